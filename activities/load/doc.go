// Package load holds the job types that take prepared messages from the pipeline
// and store them.
package load
