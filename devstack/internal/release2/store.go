package release2

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

const tables = `
CREATE TABLE IF NOT EXISTS documents (
	service TEXT NOT NULL,
	id TEXT NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (service, id)
) WITHOUT ROWID;
`

// querier is the database or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// read returns a document, or nil if there is none.
func read(ctx context.Context, db querier, service, id string) (document, error) {
	var body []byte
	err := db.QueryRowContext(ctx, `SELECT body FROM documents WHERE service = ? AND id = ?`, service, id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(body)
}

func write(ctx context.Context, db querier, service string, d document) error {
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT OR REPLACE INTO documents VALUES (?, ?, ?)`, service, d["_id"], body)
	return err
}

func remove(ctx context.Context, db querier, service, id string) error {
	_, err := db.ExecContext(ctx, `DELETE FROM documents WHERE service = ? AND id = ?`, service, id)
	return err
}

// find returns a page of documents, and how many match.
func find(ctx context.Context, db querier, service string, q query) (page []document, total int, err error) {
	if q.inOrderOfIDs() {
		if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM documents WHERE service = ?`, service).Scan(&total); err != nil {
			return nil, 0, err
		}
		page, err = scan(ctx, db, query{}, `SELECT body FROM documents WHERE service = ? ORDER BY id LIMIT ? OFFSET ?`, service, q.limit, q.skip)
		return page, total, err
	}
	matching, err := scan(ctx, db, q, `SELECT body FROM documents WHERE service = ? ORDER BY id`, service)
	if err != nil {
		return nil, 0, err
	}
	q.order(matching)
	first := min(q.skip, len(matching))
	return matching[first:min(first+q.limit, len(matching))], len(matching), nil
}

func scan(ctx context.Context, db querier, q query, statement string, args ...any) ([]document, error) {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	documents := []document{}
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		d, err := decode(body)
		if err != nil {
			return nil, err
		}
		if q.matches(d) {
			documents = append(documents, d)
		}
	}
	return documents, rows.Err()
}

func decode(body []byte) (document, error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("stored document: %w", err)
	}
	return d, nil
}
