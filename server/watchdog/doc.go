// Package watchdog tells people about alerts: once when an alert fires, and once when it
// clears.
//
// An alert has to hold for a time before it fires, and to be gone for a time before it
// clears. Replicas share a record of each alert that fires, in NATS: who makes the record
// sends the message. A record that nobody has marked as sent, nor renewed, for half a minute is sent by
// another replica. So each message is sent at least once. Without NATS each replica keeps
// records of its own.
package watchdog
