// Package sqlite is the driver "sqlite" of database/sql, for the development servers: SQLite in C, by
// github.com/mattn/go-sqlite3, with statements that are prepared once. It stands in the place of
// modernc.org/sqlite, whose Go is slower and parses each statement each time, and takes the data
// source names and has the errors that Temporal's server knows of that.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// statements is how many prepared statements a connection keeps. Temporal has some 150.
const statements = "256"

func init() { sql.Register("sqlite", sqliteDriver{}) } //nolint:gochecknoinits // As drivers of database/sql do.

// Error is an error of SQLite.
type Error struct {
	code int
	text string
}

// Error implements error.
func (e *Error) Error() string { return e.text }

// Code is the extended result code.
func (e *Error) Code() int { return e.code }

// explain makes an error of the C library one of this package.
func explain(err error) error {
	var failed sqlite3.Error
	if !errors.As(err, &failed) {
		return err
	}
	code := int(failed.ExtendedCode)
	if code == 0 {
		code = int(failed.Code)
	}
	kind := sqlite3.Error{Code: failed.Code}.Error()
	return &Error{code, fmt.Sprintf("%s: %s (%d)", kind, failed.Error(), code)}
}

type sqliteDriver struct{}

// Open implements driver.Driver. The name is file:NAME?PARAMETERS. Each parameter _pragma is
// NAME=VALUE or NAME(VALUE); _txlock is as the library has it, and the others are SQLite's own:
// https://www.sqlite.org/uri.html.
func (sqliteDriver) Open(name string) (driver.Conn, error) {
	file, query, _ := strings.Cut(name, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("parameters of the database %s: %w", file, err)
	}
	pragmas := parameters["_pragma"]
	parameters.Del("_pragma")
	parameters.Del("_time_format") // The library has this format alone.
	parameters.Set("_stmt_cache_size", statements)
	opened, err := (&sqlite3.SQLiteDriver{}).Open(file + "?" + parameters.Encode())
	if err != nil {
		return nil, explain(err)
	}
	c, ok := opened.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, fmt.Errorf("a connection of SQLite is a %T", opened)
	}
	// Another connection may be about to set the same: waiting comes first.
	slices.SortStableFunc(pragmas, func(a, b string) int {
		return strings.Compare(waitsFirst(a), waitsFirst(b))
	})
	for _, pragma := range pragmas {
		if _, err := c.Exec("PRAGMA "+pragma, nil); err != nil {
			return nil, errors.Join(explain(err), c.Close())
		}
	}
	return &conn{c}, nil
}

func waitsFirst(pragma string) string {
	if strings.HasPrefix(pragma, "busy_timeout") {
		return "0"
	}
	return "1"
}

// conn is a connection. A statement that has begun is not interrupted: the library would start a
// goroutine for each, and they take less than a call over the network.
type conn struct{ c *sqlite3.SQLiteConn }

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.c.PrepareContext(ctx, query)
	if err != nil {
		return nil, explain(err)
	}
	return &stmt{s}, nil
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	begun, err := c.c.BeginTx(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, explain(err)
	}
	return &tx{begun}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result, err := c.c.ExecContext(context.WithoutCancel(ctx), query, args)
	return result, explain(err)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found, err := c.c.QueryContext(context.WithoutCancel(ctx), query, args)
	if err != nil {
		return nil, explain(err)
	}
	return &rows{found}, nil
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error { return explain(c.c.Ping(ctx)) }

// Close implements driver.Conn.
func (c *conn) Close() error { return explain(c.c.Close()) }

type tx struct{ t driver.Tx }

// Commit implements driver.Tx.
func (t *tx) Commit() error { return explain(t.t.Commit()) }

// Rollback implements driver.Tx.
func (t *tx) Rollback() error { return explain(t.t.Rollback()) }

type stmt struct{ s driver.Stmt }

// Close implements driver.Stmt.
func (s *stmt) Close() error { return explain(s.s.Close()) }

// NumInput implements driver.Stmt.
func (s *stmt) NumInput() int { return s.s.NumInput() }

// Exec implements driver.Stmt.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	result, err := s.s.Exec(args) //nolint:staticcheck // It has no context that could interrupt it.
	return result, explain(err)
}

// Query implements driver.Stmt.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	found, err := s.s.Query(args) //nolint:staticcheck // It has no context that could interrupt it.
	if err != nil {
		return nil, explain(err)
	}
	return &rows{found}, nil
}

type rows struct{ driver.Rows }

// Next implements driver.Rows.
func (r *rows) Next(into []driver.Value) error { return explain(r.Rows.Next(into)) }
