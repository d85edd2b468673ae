// Package feed follows the platform's change feed for the job types that do something about
// its changes: they share the [Subscriber].
package feed
