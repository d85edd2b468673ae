// Package runlogs keeps what handlers log of a run in NATS, and reads it.
//
// The stream has the last 1000 lines of each run, for seven days and up to 1 GiB of all
// runs. The iterations of a continuous job share a log. A line is a JSON object of at most
// 4 KiB. Lines are sent as they come, and nobody waits for them: what NATS does not take
// is lost, and counted.
package runlogs
