package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// AddLogEntry writes a log entry, unless one of its id is there.
func (t *Tx) AddLogEntry(ctx context.Context, entry *platformv1.LogEntry) error {
	body, err := proto.Marshal(entry)
	if err != nil {
		return err
	}
	_, err = t.tx.ExecContext(ctx, `INSERT INTO log_entries (id, config_id, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		entry.GetId(), entry.GetConfigId(), body)
	return err
}

// LogEntries returns at most limit log entries of a config, the newest first, that are
// older than the one with the number before; 0 means the newest. last is the number of
// the last one, or 0 if there are no more.
func (s *Store) LogEntries(ctx context.Context, configID string, before int64, limit int) (entries []*platformv1.LogEntry, last int64, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	err = s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT seq, body FROM log_entries WHERE config_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
			configID, before, limit+1)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		var seq int64
		for rows.Next() {
			if len(entries) == limit {
				last = seq
				break
			}
			var body []byte
			if err := rows.Scan(&seq, &body); err != nil {
				return err
			}
			entry := &platformv1.LogEntry{}
			if err := proto.Unmarshal(body, entry); err != nil {
				return fmt.Errorf("stored log entry %d: %w", seq, err)
			}
			entries = append(entries, entry)
		}
		return rows.Err()
	})
	return entries, last, err
}
