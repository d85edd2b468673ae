// Package schedules brings Temporal in line with the declared jobs: it compares
// them with what is there (a [Plan]) and applies the difference. A second plan
// after apply is empty, and nothing without our search attributes is changed.
//
// What a job becomes depends on its mode: a recurring job a Schedule, a
// continuous one a running ContinuousJob workflow, a one-shot a RunJob workflow
// that ran once with the job's spec, a queued one an item of its JobQueue.
package schedules
