// Package sqlite3 has the result codes of SQLite that Temporal's server asks for:
// https://www.sqlite.org/rescode.html.
package sqlite3

// Result codes.
const (
	SQLITE_CONSTRAINT            = 19
	SQLITE_CONSTRAINT_PRIMARYKEY = SQLITE_CONSTRAINT | 6<<8
	SQLITE_CONSTRAINT_UNIQUE     = SQLITE_CONSTRAINT | 8<<8
)
