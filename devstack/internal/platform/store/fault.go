package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
)

// Fault has the feed send some changes never, and others twice. What a snapshot reads is
// always sent once. The zero Fault is none.
type Fault struct {
	Drop   float64 // share of the changes that are not sent
	Double float64 // share that is sent twice
	Seed   uint64
}

// Times is how often a feed, named by its kinds, sends a change. It is always the same
// for a change, so that a stream that is resumed does not bring back what was dropped.
func (f Fault) Times(feed string, seq int64) int {
	name := fnv.New64a()
	_, _ = name.Write(binary.BigEndian.AppendUint64([]byte(feed), uint64(seq))) //nolint:gosec // A number of the log, never negative.
	switch drawn := rand.New(rand.NewPCG(f.Seed, name.Sum64())).Float64(); {    //nolint:gosec // Reproducible on purpose.
	case drawn < f.Drop:
		return 0
	case drawn < f.Drop+f.Double:
		return 2
	}
	return 1
}

// Fault is the fault of the feed.
func (s *Store) Fault(ctx context.Context) (f Fault, err error) {
	var seed int64
	err = s.db.QueryRowContext(ctx, `SELECT dropped, doubled, seed FROM fault`).Scan(&f.Drop, &f.Double, &seed)
	if errors.Is(err, sql.ErrNoRows) {
		return Fault{}, nil
	}
	f.Seed = uint64(seed) //nolint:gosec // The same bits.
	return f, err
}

// SetFault sets the fault of the feed. It stays when the server is restarted.
func (s *Store) SetFault(ctx context.Context, f Fault) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := s.db.ExecContext(ctx, `INSERT OR REPLACE INTO fault VALUES (1, ?, ?, ?)`, f.Drop, f.Double, int64(f.Seed)) //nolint:gosec // The same bits.
	return err
}
