// Package effects has the job type that does what follows from changes on the platform:
// variants of photos and logos, tables, and teardowns; and the one that keeps these variants in
// line with their uploads.
package effects
