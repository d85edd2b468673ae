// Package alerts keeps what replicas share about alerts in a NATS key-value bucket: which
// alerts were told, and the silences. Each change names the revision that it changes, so
// that of several replicas one makes it.
package alerts
