package reversesync

import (
	"maps"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/release2"
)

// NewDocument is the document that is created for an entity.
func (k Kind) NewDocument(entity Entity) (release2.Document, error) {
	want, err := k.Project(entity)
	if err != nil {
		return nil, err
	}
	patch, err := want.patch(nil, slices.Collect(maps.Keys(want)))
	patch.Set["_id"] = entity.GetId()
	return patch.Set, err
}

// Compare is what SyncOne does, without servers: it returns what is to be done, the
// patch for that, and the record that is kept if nothing is to be written.
func (k Kind) Compare(entity Entity, d release2.Document, record Record) (Difference, release2.Patch, Record, error) {
	diff, err := k.compare(entity, d, record, false)
	if err != nil {
		return diff, release2.Patch{}, record, err
	}
	patch, err := diff.want.patch(d, diff.paths())
	return diff, patch, diff.record, err
}

// Written is the record of a document that was just written.
func (k Kind) Written(entity Entity, account string) (Record, error) {
	want, err := k.Project(entity)
	return Record{Account: account, Fields: want.hashes()}, err
}
