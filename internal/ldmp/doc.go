// Package ldmp is a client of LoggerNet's Logger Data Monitoring Protocol: it
// reads the records of data loggers by Campbell Scientific as their server
// collects them.
//
// The client opens a TCP connection and sends one specification, which lists
// tables of stations and where to begin in each, ended by a carriage return. The
// server sends records as XML, each ended by a NUL byte, and expects a single
// carriage return as the acknowledgement of each, in their order; it sends no
// more than a few (the vendor's: one) that are not acknowledged. There is no
// login, no sign of life while there is nothing to send, and no way to change
// the specification but to connect anew.
//
// The vendor publishes no specification of the protocol. The form here is what
// clients in production send and rely on; where those are silent the client
// takes what it can make sense of, and hands back everything else as a
// [MalformedError] with the bytes, never losing its place in the stream.
package ldmp
