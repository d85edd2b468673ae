// Package pipeline is the data plane: the messages that carry sensor data from
// the vendors to the stores, the JetStream streams that hold them, and the
// bookmarks that say how far each source was read.
//
// Three streams hold three kinds of message. RAW has what a vendor said, in its
// own terms, for the archive. PREPARED has the same as points of a time series
// database, addressed to a location. QUARANTINE has what could be neither
// prepared nor stored, verbatim and with the reason. Subjects are in
// subjects.go, message bodies in message.go.
//
// Delivery is at least once everywhere: consumers must be idempotent.
package pipeline
