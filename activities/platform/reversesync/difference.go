package reversesync

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/release2"
)

// Action is what has to be done about an entity.
type Action string

// Actions.
const (
	ActionNone     Action = "none"     // it is in line
	ActionCreate   Action = "create"   // there is no document yet
	ActionUpdate   Action = "update"   // some fields are to be written
	ActionConflict Action = "conflict" // the document is left alone
	ActionGone     Action = "gone"     // Release 3 has no such entity; the document is left alone
)

// Reason is why a document is left alone.
type Reason string

// Reasons.
const (
	ReasonEdited  Reason = "edited"  // fields were edited in Release 2
	ReasonDeleted Reason = "deleted" // the document was deleted in Release 2
	ReasonRefused Reason = "refused" // Release 2 does not take what should be written
	ReasonSlug    Reason = "slug"    // the document of another entity has the slug
)

// Record is what is known about the document of an entity.
type Record struct {
	// Account is the user who wrote the document last when it was reverse sync.
	Account string `json:"account,omitempty"`
	// Fields are the hashes of the fields that were in line last, by path: "" for one that
	// had no value. Without any, the document was never in line.
	Fields map[string]string `json:"fields,omitempty"`
	// Pending is a write of the document that was begun. It is here before the write is
	// sent, and gone when its outcome is known.
	Pending *Pending `json:"pending,omitempty"`
	// Conflict is why the document is left alone, if it is.
	Conflict *Conflict `json:"conflict,omitempty"`
}

// Pending is a write that may have been made.
type Pending struct {
	// VersionID is of the document that the write replaces, empty if it creates one.
	VersionID string `json:"version_id,omitempty"`
	// Fields are the hashes of the fields that it writes, by path.
	Fields map[string]string `json:"fields,omitempty"`
}

// before are the hashes of the fields that were in line last, as far as is known of a
// document, and all paths that have ever been written.
//
// A document that still has the version that a pending write replaces was not written.
// Another one may have been, and then edited. So only what the write held is taken for
// its own: a value from before it may be the edit of somebody who took the write back.
func (r Record) before(d release2.Document) (fields map[string]string, paths map[string]bool) {
	fields, paths = r.Fields, map[string]bool{}
	for path := range r.Fields {
		paths[path] = true
	}
	if p := r.Pending; p != nil && p.VersionID != d.VersionID() {
		fields = p.Fields
		for path := range p.Fields {
			paths[path] = true
		}
	}
	return fields, paths
}

// hadDocument reports whether the entity has ever had a document.
func (r Record) hadDocument() bool {
	return len(r.Fields) > 0 || r.Pending != nil && r.Pending.VersionID != ""
}

// Conflict is why a document is left alone.
type Conflict struct {
	Reason Reason `json:"reason"`
	// Message is what Release 2 says of a document that it refuses, or who has its slug.
	Message string `json:"message,omitempty"`
	// Fields are the paths that were edited.
	Fields []string `json:"fields,omitempty"`
	// EditedBy and EditedAt are of the last edit of the document, VersionID is what it
	// made.
	EditedBy  string `json:"edited_by,omitempty"`
	EditedAt  string `json:"edited_at,omitempty"`
	VersionID string `json:"version_id,omitempty"`
	// Since is when the conflict was found.
	Since time.Time `json:"since"`
}

// sameAs reports whether two conflicts are about the same.
func (c *Conflict) sameAs(other *Conflict) bool {
	return other != nil && c.Reason == other.Reason && c.Message == other.Message && c.VersionID == other.VersionID &&
		slices.Equal(c.Fields, other.Fields)
}

// FieldDifference is a field of a document that is not as it should be.
type FieldDifference struct {
	Path     string          `json:"path"`
	Release2 json.RawMessage `json:"release_2,omitempty"` // nothing: it has no value
	Release3 json.RawMessage `json:"release_3,omitempty"`
	// Edited says that the value of Release 2 is not one that reverse sync wrote.
	Edited bool `json:"edited,omitempty"`
}

// Difference is what is to be done about an entity, or was done.
type Difference struct {
	Kind     string            `json:"kind"`
	ID       string            `json:"id"`
	Name     string            `json:"name,omitempty"`
	Action   Action            `json:"action"`
	Fields   []FieldDifference `json:"fields,omitempty"`
	Conflict *Conflict         `json:"conflict,omitempty"`

	want    Projection
	record  Record // as it should be, if nothing is written
	version string // of the document that was to be written
	wrote   bool   // it was written
}

// paths are those of the fields.
func (d *Difference) paths() []string {
	paths := make([]string, len(d.Fields))
	for i, f := range d.Fields {
		paths[i] = f.Path
	}
	return paths
}

// compare finds what has to be done so that a document has what is wanted. The document
// is nil if there is none. Overwrite takes no heed of edits.
func compare(want Projection, d release2.Document, record Record, overwrite bool) (Difference, error) {
	diff := Difference{Action: ActionNone, want: want, record: Record{Account: record.Account, Fields: map[string]string{}}}
	if d == nil {
		if !record.hadDocument() || overwrite {
			diff.Action = ActionCreate
			return diff, nil
		}
		diff.record = record
		return diff.withConflict(Conflict{Reason: ReasonDeleted}, record.Conflict), nil
	}
	before, known := record.before(d)
	if p := record.Pending; p != nil && p.VersionID == d.VersionID() {
		diff.record.Pending = p // it may still be under way
	}
	paths := maps.Clone(known)
	for path := range want {
		paths[path] = true
	}
	var edited []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		is, err := inDocument(d, path)
		if err != nil {
			return diff, err
		}
		if should := want[path]; hash(is) == hash(should) {
			if should != nil {
				diff.record.Fields[path] = hash(should)
			}
			continue
		}
		// A path that is known was written when reverse sync wrote the document last, and
		// since then nobody else has, if the account did it.
		ours := hash(is) == before[path] || known[path] && record.Account != "" && d.UpdatedBy() == record.Account
		switch {
		case known[path] && ours:
			diff.record.Fields[path] = hash(is)
		case known[path]:
			diff.record.Fields[path] = before[path]
		}
		diff.Fields = append(diff.Fields, FieldDifference{Path: path, Release2: is, Release3: want[path], Edited: !ours})
		if !ours {
			edited = append(edited, path)
		}
	}
	switch {
	case len(diff.Fields) == 0:
	case len(edited) == 0 || overwrite:
		diff.Action = ActionUpdate
	default:
		return diff.withConflict(Conflict{
			Reason: ReasonEdited, Fields: edited, EditedBy: d.UpdatedBy(), EditedAt: d.UpdatedAt(), VersionID: d.VersionID(),
		}, record.Conflict), nil
	}
	return diff, nil
}

// withConflict makes the difference a conflict. One that is known keeps its time.
func (d Difference) withConflict(c Conflict, known *Conflict) Difference {
	c.Since = time.Now().UTC().Truncate(time.Second)
	if c.sameAs(known) {
		c.Since = known.Since
	}
	d.Action, d.Conflict, d.record.Conflict = ActionConflict, &c, &c
	return d
}
