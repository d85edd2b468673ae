// Package teardown is the job type that removes what a deleted organization has left.
package teardown
