// Package sqlite opens the databases of the development servers.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver
)

// Open opens the database file, which it makes, and applies the schema. A
// transaction takes the lock of writers when it begins, unless it is read-only: that
// sees the database as it was when it first read.
func Open(ctx context.Context, file, schema string) (*sql.DB, error) {
	settings := url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)", "busy_timeout(10000)"},
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(file)+"?"+settings.Encode())
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE;"+schema+"COMMIT;"); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("schema of %s: %w", file, err)
	}
	return db, nil
}
