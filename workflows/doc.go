// Package workflows holds the workflow types of the job system, which
// serve every job type and every mode:
//
//   - [RunJob] is one run of a job: a single activity, named after the job type.
//   - [ContinuousJob] runs a job's activity again and again until it is stopped.
//   - [JobQueue] runs the items of one named queue, in order and one at a time;
//     a [JobQueuePage] keeps items that a deep queue has no room for.
//
// Names, ids, messages and states are in package contract. What a message sets
// lives in the state that continue-as-new carries on. Message handlers only change
// that state: they never wait. The activities that workflows start are in package
// workers.
//
// This is the only deterministic code of the project. A change here must
// replay the recorded histories in testdata/replay.
package workflows
