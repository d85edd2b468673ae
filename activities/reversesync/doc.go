// Package reversesync has the job types that bring the metadata of Release 2 in line
// with Release 3.
package reversesync
