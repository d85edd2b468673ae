// Package cli is the starter, the command line of the job system: it checks
// jobs.toml, brings Temporal in line with it, and does what operators ask for
// with jobs, runs and queues. docs/operating.md describes it for them.
//
// Data goes to standard output, as tables or as JSON; progress, notes and
// errors go to standard error.
package cli
