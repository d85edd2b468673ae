package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// ErrTooOld says that the log no longer has what follows a position, or never had it.
var ErrTooOld = errors.New("the log of changes no longer has what follows this position")

// Position is a place in the log: after the change with this number.
type Position struct {
	Epoch string // the log's name
	Seq   int64
}

// Entry is a change in the log.
type Entry struct {
	Seq    int64
	Change *platformv1.Change
}

// Head is the position after the last change.
func (s *Store) Head(ctx context.Context) (p Position, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		p, err = s.headIn(ctx, tx)
		return err
	})
	return p, err
}

// Changes returns at most limit changes of the kinds after a position, and the position
// up to which there are no others. It returns [ErrTooOld] if the log does not reach back
// to the position.
func (s *Store) Changes(ctx context.Context, kinds []platformv1.ResourceKind, after Position, limit int) (entries []Entry, upTo Position, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		upTo, err = s.headIn(ctx, tx)
		if err != nil {
			return err
		}
		var trimmed int64
		if err := tx.QueryRowContext(ctx, `SELECT trimmed FROM feed`).Scan(&trimmed); err != nil {
			return err
		}
		if after.Epoch != s.epoch || after.Seq < trimmed || after.Seq > upTo.Seq {
			return ErrTooOld
		}
		entries, err = changesIn(ctx, tx, kinds, after.Seq, limit)
		if len(entries) == limit && limit > 0 {
			upTo.Seq = entries[limit-1].Seq
		}
		return err
	})
	return entries, upTo, err
}

func changesIn(ctx context.Context, tx *sql.Tx, kinds []platformv1.ResourceKind, after int64, limit int) ([]Entry, error) {
	rows, err := tx.QueryContext(ctx, `SELECT seq, body FROM changes WHERE seq > ? AND kind IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?`,
		after, numbers(kinds), limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var entries []Entry
	for rows.Next() {
		entry := Entry{Change: &platformv1.Change{}}
		var body []byte
		if err := rows.Scan(&entry.Seq, &body); err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(body, entry.Change); err != nil {
			return nil, fmt.Errorf("stored change %d: %w", entry.Seq, err)
		}
		entries = append(entries, entry)
	}
	return entries, rows.Err()
}

// Place is a place in a snapshot: after this resource.
type Place struct {
	Kind platformv1.ResourceKind
	ID   string
}

// Snapshot calls read for each resource of the kinds after a place, in the order of
// kinds and ids, as all of them are at one moment. The position is that of the moment.
func (s *Store) Snapshot(ctx context.Context, kinds []platformv1.ResourceKind, after Place, read func(Position, *platformv1.Resource) error) (p Position, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		if p, err = s.headIn(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT body FROM resources WHERE (kind, id) > (?, ?) AND kind IN (SELECT value FROM json_each(?)) ORDER BY kind, id`,
			after.Kind, after.ID, numbers(kinds))
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				return err
			}
			resource, err := decode(body)
			if err != nil {
				return err
			}
			if err := read(p, resource); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return p, err
}

// Trim keeps only the newest changes of the log.
func (s *Store) Trim(ctx context.Context, keep int64) error {
	return s.Update(ctx, "", func(tx *Tx) error { return tx.trim(ctx, keep) })
}

func (s *Store) headIn(ctx context.Context, tx *sql.Tx) (Position, error) {
	seq, err := reader{tx}.head(ctx)
	return Position{Epoch: s.epoch, Seq: seq}, err
}

// numbers is a JSON array of the kinds; none means all.
func numbers(kinds []platformv1.ResourceKind) string {
	list := make([]int32, 0, len(platformv1.ResourceKind_name))
	for _, kind := range kinds {
		list = append(list, int32(kind))
	}
	if len(kinds) == 0 {
		list = slices.AppendSeq(list, maps.Keys(platformv1.ResourceKind_name))
	}
	text, _ := json.Marshal(list) // numbers
	return string(text)
}
