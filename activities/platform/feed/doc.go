// Package feed has the job types that follow the platform's change feed, and the
// [Subscriber] that they share.
package feed
