// Package objects reads and writes objects in an S3 store.
//
// Writes are conditional: [Store.PutNew] stores an object once, and finds it
// again when it is repeated. Every object it writes carries the SHA-256 of its
// content as user metadata, so that a repeat can tell equal from different
// without reading it.
//
// Errors carry a class (see [job.Failure]) and name the bucket and the key, or
// the address of a store that does not answer. A request that fails for a
// passing reason is tried three times within about a second; what outlasts
// that is left to the job's own retries.
package objects
