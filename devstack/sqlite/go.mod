// Temporal's server imports this module path for its SQLite. Here the path has another SQLite: go.mod of
// the module above replaces it.
module modernc.org/sqlite

go 1.26

require github.com/mattn/go-sqlite3 v1.14.53
