// Package changes keeps what people and programs changed by the Job API in NATS, and reads it.
//
// The stream has the latest 200 changes of each job, queue or other object, for 180 days and up
// to 256 MiB of all. Nobody waits for it: a change that NATS does not take is in the audit log
// alone.
package changes
