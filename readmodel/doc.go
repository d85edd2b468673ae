// Package readmodel keeps a picture of all jobs, queues, workers and loads, and of what needs
// a person, for all who look at it.
//
// A [Reader] reads Temporal and NATS once for all its viewers, however many they are, with
// at most a few calls of Temporal a second. It rests while nobody looks. What it knows at a
// moment is a [Snapshot]. What cannot be read stays as it was, with a note.
//
// Each kind of thing has a source, which is read again after a while:
//
//   - runs that have started or ended, and all continuous jobs: each second
//   - runs that have failed within a day, which are grouped: once, then as they end
//   - schedules, which say what is paused, and what is new or gone: each second, more rarely
//     if a list takes longer than a third of that
//   - workers: every two seconds
//   - queues and continuous jobs, which a worker answers for: one after the other, so that
//     each has its turn every few seconds if they are few
//   - runs under way, for what no list shows, such as whether a worker has taken them: one a
//     second, the first hundred by the id of the job
//   - loads: every two seconds, from NATS
//   - integrations, servers, and drift: more rarely
package readmodel
