package watchdog

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Shared is a store that replicas share: see [alerts.Bucket].
type Shared interface {
	Read(ctx context.Context) (alerts.State, error)
	Put(ctx context.Context, record alerts.Record, revision uint64) (uint64, error)
	Delete(ctx context.Context, name string, revision uint64) error
	PutReplica(ctx context.Context, replica alerts.Replica) error
	DeleteReplica(ctx context.Context, name string) error
}

// store is the shared store, or the memory of this replica while that is away.
type store struct {
	shared  Shared // nil: there is none
	timeout time.Duration
	logger  *slog.Logger

	mu       sync.Mutex
	away     bool // the shared store was not read last time
	records  map[string]alerts.Stored
	silences []alerts.Silence
	changed  map[string]bool // while the shared store was away
	revision uint64          // of the memory
}

// ownRevisions is where revisions of the memory begin: none of NATS is so large.
const ownRevisions = 1 << 62

func newStore(shared Shared, timeout time.Duration, logger *slog.Logger) *store {
	return &store{
		shared: shared, timeout: timeout, logger: logger, away: shared == nil, records: map[string]alerts.Stored{},
		changed: map[string]bool{}, revision: ownRevisions,
	}
}

// read gives all. While the shared store is away it gives what is in memory.
func (s *store) read(ctx context.Context) alerts.State {
	if s.shared == nil {
		return s.memory()
	}
	once, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	state, err := s.shared.Read(once)
	s.mu.Lock()
	if err != nil {
		if !s.away {
			s.logger.WarnContext(ctx, "the watchdog keeps records of its own until NATS is back: each replica sends its own messages", "error", err)
		}
		s.away = true
		s.mu.Unlock()
		return s.memory()
	}
	changed, own := slices.Collect(maps.Keys(s.changed)), maps.Clone(s.records)
	s.away, s.changed = false, map[string]bool{}
	s.mu.Unlock()
	if len(changed) > 0 {
		for _, name := range changed {
			s.reconcile(once, own, state.Records, name)
		}
		if again, err := s.shared.Read(once); err == nil {
			state = again
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records, s.silences = maps.Clone(state.Records), state.Silences
	return state
}

// reconcile writes what was sent while the shared store was away. Where another replica was
// faster, its record stays.
func (s *store) reconcile(ctx context.Context, own, theirs map[string]alerts.Stored, name string) {
	record, have := own[name]
	there, theirsHave := theirs[name]
	var err error
	switch {
	case have && !theirsHave:
		_, err = s.shared.Put(ctx, record.Record, 0)
	case have && record.Sent && !there.Sent && record.Phase == there.Phase:
		_, err = s.shared.Put(ctx, record.Record, there.Revision)
	case !have && theirsHave:
		err = s.shared.Delete(ctx, name, there.Revision)
	}
	if err != nil {
		s.logger.DebugContext(ctx, "a record of an alert stays as it is in NATS", "alert", name, "error", err)
	}
}

// answers reports whether the shared store was read last time, if there is one.
func (s *store) answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared == nil || !s.away
}

func (s *store) memory() alerts.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return alerts.State{Records: maps.Clone(s.records), Silences: s.silences}
}

// put writes a record in place of the one with the revision; 0 means that there is none.
func (s *store) put(ctx context.Context, record alerts.Record, revision uint64) (uint64, error) {
	s.mu.Lock()
	if s.away {
		defer s.mu.Unlock()
		if s.records[record.Name].Revision != revision {
			return 0, alerts.ErrChanged
		}
		s.revision++
		s.records[record.Name] = alerts.Stored{Record: record, Revision: s.revision}
		s.changed[record.Name] = true
		return s.revision, nil
	}
	s.mu.Unlock()
	once, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	next, err := s.shared.Put(once, record, revision)
	if err == nil {
		s.mu.Lock()
		s.records[record.Name] = alerts.Stored{Record: record, Revision: next}
		s.mu.Unlock()
	}
	return next, err
}

// remove removes a record with a revision.
func (s *store) remove(ctx context.Context, name string, revision uint64) error {
	s.mu.Lock()
	if s.away {
		defer s.mu.Unlock()
		if s.records[name].Revision != revision {
			return alerts.ErrChanged
		}
		delete(s.records, name)
		s.changed[name] = true
		return nil
	}
	s.mu.Unlock()
	once, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.shared.Delete(once, name, revision)
	if err == nil {
		s.mu.Lock()
		delete(s.records, name)
		s.mu.Unlock()
	}
	return err
}
