// Package job is the vocabulary of the job system: what a job is, how it is
// scheduled, what a job type is, and what a handler sees while it runs.
//
// A [Job] has an id, a job type, a spec (the parameters of its type), exactly
// one [Mode] and [Options]. A [Type] is named handler code; it runs as one
// Temporal activity, but nothing here knows Temporal: a handler gets a context,
// a [Run] and its typed spec, and returns a [Result] or an error. Errors made
// with [Final] end a run; every other error is retried.
//
// The package does no I/O and imports the standard library and an ISO 8601
// duration parser only. Package job/jobsfile reads jobs.toml into jobs.
package job
