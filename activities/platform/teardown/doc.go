// Package teardown removes what an organization has outside of the Platform API, once it
// is marked as deleted.
//
// The platform's list of finalizers is the record of what is left. Each finalizer has a
// stage here, which lists what there is and removes it. A dry run is the same code
// without the removal.
//
// A thing is removed only if it carries the organization's id, if a record of the platform
// names it exactly, or if it carries the slug while no other organization has that slug.
package teardown
