package auth

import "maps"

// Rows are the rows of the table.
func Rows() map[string]Role { return maps.Clone(least) }
