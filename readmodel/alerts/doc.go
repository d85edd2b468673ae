// Package alerts keeps what replicas share about alerts in a NATS key-value bucket: which
// alerts were told, the silences, and which replicas there are. Each change of a record or a
// silence names the revision that it changes, so that of several replicas one makes it.
package alerts
