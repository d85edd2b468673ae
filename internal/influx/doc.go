// Package influx writes points to InfluxDB 1.x over its HTTP API, and says what
// became of a write in terms that a loader can act on.
//
// It encodes line protocol by itself: numbers are always floats, names and
// values are escaped or refused before the server can misread them. A write
// that fails has a [Kind]: only some kinds are the fault of the points.
package influx
