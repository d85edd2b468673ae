// Package store keeps the resources of the reference Platform API and the log of
// their changes in one SQLite file.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/devstack/internal/sqlite"
)

// The log is in the order of commits: a transaction takes its numbers while it holds
// the one lock of writers. A number is never used again.
const schema = `
CREATE TABLE IF NOT EXISTS resources (
	kind INTEGER NOT NULL,
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	station_id TEXT NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS resources_by_organization ON resources (organization_id, kind, id);
CREATE INDEX IF NOT EXISTS resources_by_station ON resources (station_id, kind, id);
CREATE TABLE IF NOT EXISTS changes (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	kind INTEGER NOT NULL,
	body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS feed (
	only INTEGER PRIMARY KEY CHECK (only = 1),
	epoch TEXT NOT NULL,
	trimmed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS fault (
	only INTEGER PRIMARY KEY CHECK (only = 1),
	dropped REAL NOT NULL,
	doubled REAL NOT NULL,
	seed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS log_entries (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	config_id TEXT NOT NULL,
	body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS log_entries_by_config ON log_entries (config_id, seq);
`

// DefaultKeep is how many changes the log keeps.
const DefaultKeep = 100_000

// Options of a store.
type Options struct {
	File string
	// Keep is how many changes the log keeps. Defaults to DefaultKeep.
	Keep int64
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Store keeps resources and the log of their changes.
type Store struct {
	db    *sql.DB
	keep  int64
	now   func() time.Time
	epoch string

	writing sync.Mutex // writers wait here and not in SQLite

	mu      sync.Mutex
	changed chan struct{} // closed by the next commit
}

// Open opens the store, which it makes.
func Open(ctx context.Context, o Options) (*Store, error) {
	db, err := sqlite.Open(ctx, o.File, schema)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, keep: o.Keep, now: o.Now, changed: make(chan struct{})}
	if s.keep == 0 {
		s.keep = DefaultKeep
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.epoch, err = openFeed(ctx, db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// openFeed names a new log, so that a token of another one is told from its own.
func openFeed(ctx context.Context, db *sql.DB) (epoch string, err error) {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	if _, err := db.ExecContext(ctx, `INSERT INTO feed VALUES (1, ?, 0) ON CONFLICT DO NOTHING`, hex.EncodeToString(random)); err != nil {
		return "", err
	}
	err = db.QueryRowContext(ctx, `SELECT epoch FROM feed`).Scan(&epoch)
	return epoch, err
}

// Close closes the store.
func (s *Store) Close() error { return s.db.Close() }

// Now is the time of the store's clock, in UTC.
func (s *Store) Now() time.Time { return s.now().UTC() }

// Update runs change in a transaction. What it changes and the log of it are
// committed together, or not at all.
func (s *Store) Update(ctx context.Context, actor string, change func(*Tx) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &Tx{reader: reader{tx}, epoch: s.epoch, actor: actor, now: s.Now()}
	if err := change(t); err != nil {
		_ = tx.Rollback()
		return err
	}
	if err := t.trim(ctx, s.keep); err != nil {
		_ = tx.Rollback()
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// Changed is closed by the next commit.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// view runs read on the database as it is at one moment.
func (s *Store) view(ctx context.Context, read func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	return read(tx)
}
