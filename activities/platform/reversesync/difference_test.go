package reversesync_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	account = "5a8f0000000000000000acc0" // of reverse sync
	human   = "5a8f0000000000000000ed17"
)

// apply patches a document as Release 2 does.
func apply(d release2.Document, p release2.Patch, by string) release2.Document {
	d = maps.Clone(d)
	maps.Copy(d, p.Set)
	for _, key := range p.Unset {
		delete(d, key)
	}
	d["updated_by"] = by
	return d
}

// TestEditsAreToldFromWhatWasWritten compares a station, whose document was written and
// then changed, with what is wanted now.
func TestEditsAreToldFromWhatWasWritten(t *testing.T) {
	t.Parallel()
	station, _ := reversesync.KindNamed("station")
	before, _ := example(t, station)
	document, err := station.NewDocument(before)
	require.NoError(t, err)
	document["updated_by"] = account
	record, err := station.Written(before, account)
	require.NoError(t, err)
	later := func(change func(*platformv1.Station)) reversesync.Entity {
		s, _ := clone(before).(*platformv1.Station)
		change(s)
		return s
	}
	renamed := later(func(s *platformv1.Station) { s.Name = "Cahto" })
	by := func(user string, set map[string]any, unset ...string) release2.Document {
		return apply(document, release2.Patch{Set: set, Unset: unset}, user)
	}
	noRecord := reversesync.Record{}
	for name, c := range map[string]struct {
		entity reversesync.Entity
		d      release2.Document
		record reversesync.Record
		action reversesync.Action
		fields string // that differ; with ! those that were edited
	}{
		"nothing changed":                          {before, document, record, "none", "[]"},
		"no document":                              {before, nil, noRecord, "create", "[]"},
		"the document was deleted":                 {before, nil, record, "conflict", "[]"},
		"changed in Release 3":                     {renamed, document, record, "update", "[name]"},
		"removed in Release 3":                     {later(func(s *platformv1.Station) { s.Description, s.AccessLevels = "", nil }), document, record, "update", "[access_levels.public_level description]"},
		"a field that nobody maps was edited":      {renamed, by(human, map[string]any{"media": []any{"x"}}), record, "update", "[name]"},
		"another key of an object was edited":      {before, by(human, map[string]any{"access_levels": map[string]any{"public_level": 2.0, "explicit": []any{1}}}), record, "none", "[]"},
		"edited":                                   {before, by(human, map[string]any{"name": "Edited"}), record, "conflict", "[!name]"},
		"edited and changed":                       {renamed, by(human, map[string]any{"name": "Edited"}), record, "conflict", "[!name]"},
		"one edited, another changed":              {renamed, by(human, map[string]any{"slug": "edited"}), record, "conflict", "[name !slug]"},
		"edited to what is wanted":                 {renamed, by(human, map[string]any{"name": "Cahto"}), record, "none", "[]"},
		"taken away":                               {before, by(human, nil, "description"), record, "conflict", "[!description]"},
		"emptied in both":                          {later(func(s *platformv1.Station) { s.Description = "" }), by(human, map[string]any{"description": ""}), record, "none", "[]"},
		"written by us, and the record was lost":   {renamed, by(account, map[string]any{"name": "In between"}), record, "update", "[name]"},
		"a field that Release 3 never had":         {before, by(human, map[string]any{"involved_parties": []any{"x"}}), record, "none", "[]"},
		"found, and it agrees":                     {before, by(human, nil), noRecord, "none", "[]"},
		"found, and it has something else":         {renamed, by(human, nil), noRecord, "conflict", "[!name]"},
		"found, and it lacks something":            {before, by(human, nil, "description"), noRecord, "update", "[description]"},
		"found without an account, something else": {renamed, apply(document, release2.Patch{}, ""), noRecord, "conflict", "[!name]"},
	} {
		diff, patch, kept, err := station.Compare(c.entity, c.d, c.record)
		require.NoError(t, err)
		require.Equal(t, c.action, diff.Action, name)
		fields := []string{}
		for _, f := range diff.Fields {
			mark := ""
			if f.Edited {
				mark = "!"
			}
			fields = append(fields, mark+f.Path)
		}
		require.Equal(t, c.fields, fmt.Sprint(fields), name)
		switch diff.Action {
		case reversesync.ActionConflict:
			require.NotNil(t, kept.Conflict, name)
		case reversesync.ActionUpdate:
			again, _, _, err := station.Compare(c.entity, apply(c.d, patch, account), kept)
			require.NoError(t, err)
			require.Equal(t, reversesync.ActionNone, again.Action, name)
		}
	}

	// An edit that both agree on is nobody's any more.
	_, _, kept, err := station.Compare(renamed, by(human, map[string]any{"name": "Cahto"}), record)
	require.NoError(t, err)
	diff, _, _, err := station.Compare(before, by(human, map[string]any{"name": "Cahto"}), kept)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionUpdate, diff.Action)

	// A field that Release 3 begins to have does not replace one that somebody wrote.
	bare := later(func(s *platformv1.Station) { s.Description = "" })
	record, err = station.Written(bare, account)
	require.NoError(t, err)
	diff, _, _, err = station.Compare(before, by(account, map[string]any{"description": "Edited before our last write"}), record)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionConflict, diff.Action)
}

// A conflict keeps its time as long as the document is the same.
func TestAConflictIsKnownAgain(t *testing.T) {
	t.Parallel()
	station, _ := reversesync.KindNamed("station")
	entity, d := example(t, station)
	record, err := station.Written(entity, account)
	require.NoError(t, err)
	d["name"], d["updated_by"], d["version_id"] = "Edited", human, "1"
	_, _, first, err := station.Compare(entity, d, record)
	require.NoError(t, err)
	first.Conflict.Since = first.Conflict.Since.AddDate(-1, 0, 0)
	_, _, again, err := station.Compare(entity, d, first)
	require.NoError(t, err)
	require.Equal(t, first, again)
	d["version_id"] = "2"
	_, _, other, err := station.Compare(entity, d, first)
	require.NoError(t, err)
	require.NotEqual(t, first.Conflict.Since, other.Conflict.Since)
}

// TestProjectionsAreStable: what is written is in line, however its keys are ordered,
// and any document comes in line by its patch.
func TestProjectionsAreStable(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	for range 100 {
		for _, k := range reversesync.Kinds() {
			a, b := newEntity(k), newEntity(k)
			fill(random, a.ProtoReflect(), 0)
			fill(random, b.ProtoReflect(), 0)
			document, err := k.NewDocument(a)
			require.NoError(t, err)
			require.Equal(t, reversesync.ActionNone, compareStored(t, k, a, document).Action, "%s as it is stored", a)
			copied, err := k.NewDocument(clone(a))
			require.NoError(t, err)
			require.Equal(t, document, copied)

			document["updated_by"] = account
			record, err := k.Written(a, account)
			require.NoError(t, err)
			diff, patch, _, err := k.Compare(b, document, record)
			require.NoError(t, err)
			require.NotEqual(t, reversesync.ActionConflict, diff.Action)
			require.Equal(t, reversesync.ActionNone, compareStored(t, k, b, apply(document, patch, account)).Action, "from %s to %s", a, b)
		}
	}
}

// compareStored compares an entity with a document that went through JSON.
func compareStored(t *testing.T, k reversesync.Kind, entity reversesync.Entity, d release2.Document) reversesync.Difference {
	t.Helper()
	text, err := json.Marshal(d)
	require.NoError(t, err)
	var stored release2.Document
	require.NoError(t, json.Unmarshal(text, &stored))
	diff, _, _, err := k.Compare(entity, stored, reversesync.Record{})
	require.NoError(t, err)
	return diff
}

var words = []string{
	"", "a", "Ünïcode <&>", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z", "5A8F00000000000000000001", "123", "true", "America/Denver",
}

// fill gives fields of a message random values.
func fill(random *rand.Rand, m protoreflect.Message, depth int) {
	const deepest = 4
	fields := m.Descriptor().Fields()
	oneof := -1
	if m.Descriptor().Oneofs().Len() == 1 {
		oneof = random.IntN(fields.Len())
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		if oneof >= 0 && field.ContainingOneof() != nil && !field.ContainingOneof().IsSynthetic() && i != oneof || random.IntN(3) == 0 || depth > deepest {
			continue
		}
		switch {
		case field.IsMap():
			for range random.IntN(3) {
				value := m.NewField(field).Map().NewValue()
				if field.MapValue().Message() != nil {
					fill(random, value.Message(), depth+1)
				} else {
					value = scalar(random, field.MapValue())
				}
				m.Mutable(field).Map().Set(protoreflect.ValueOfString(words[1+random.IntN(len(words)-1)]).MapKey(), value)
			}
		case field.IsList():
			for range random.IntN(3) {
				list := m.Mutable(field).List()
				if field.Message() != nil {
					fill(random, list.AppendMutable().Message(), depth+1)
				} else {
					list.Append(scalar(random, field))
				}
			}
		case field.Message() != nil:
			fill(random, m.Mutable(field).Message(), depth+1)
		default:
			m.Set(field, scalar(random, field))
		}
	}
}

func scalar(random *rand.Rand, field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(random.IntN(field.Enum().Values().Len())))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(random.Int32N(1000))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(random.Int64N(4e9))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(random.Float64() * 90)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(words[random.IntN(len(words))])
	}
	return field.Default()
}
