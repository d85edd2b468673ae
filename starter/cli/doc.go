// Package cli is the starter, the command line of the job system: it checks
// jobs.toml, applies it to Temporal, and shows and changes jobs, runs and queues.
// docs/operating.md describes it for operators.
//
// Data goes to standard output, as tables or as JSON; progress, notes and
// errors go to standard error.
package cli
