package reversesync

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/internal/release2"
)

// Projection is what a document has in the fields that are mapped: canonical JSON by
// path. Fields without a value are left out.
type Projection map[string]json.RawMessage

// Project gives what the document of an entity should have.
func (k Kind) Project(entity Entity) (Projection, error) {
	m := entity.ProtoReflect()
	p := Projection{}
	for _, f := range k.Fields {
		value, err := f.value(m)
		if err != nil {
			return nil, err
		}
		object, several := value.(map[string]any)
		if parent, all := strings.CutSuffix(f.To, ".*"); all && several {
			for key, item := range object {
				if err := p.set(parent+"."+key, item); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := p.set(f.To, value); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// value is the field's value, converted.
func (f Field) value(m protoreflect.Message) (any, error) {
	value, err := f.read(m)
	if empty(value) && f.Else != nil {
		value = f.Else
	}
	return value, err
}

func (f Field) read(m protoreflect.Message) (any, error) {
	if f.From == "" {
		return nil, nil
	}
	for rest := f.From; ; {
		name, below, nested := strings.Cut(rest, ".")
		field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return nil, fmt.Errorf("message %s has no field %s", m.Descriptor().Name(), f.From)
		}
		if field.HasPresence() && !m.Has(field) {
			return nil, nil
		}
		if !nested {
			return f.As.convert(field, m.Get(field)), nil
		}
		m, rest = m.Get(field).Message(), below
	}
}

func (p Projection) set(path string, value any) error {
	text, err := canonical(path, value)
	if err != nil {
		return fmt.Errorf("field %s: %w", path, err)
	}
	if text != nil {
		p[path] = text
	}
	return nil
}

// inDocument is the canonical value at a path of a document, nil if it has none.
func inDocument(d release2.Document, path string) (json.RawMessage, error) {
	key, below, nested := strings.Cut(path, ".")
	value := d[key]
	if nested {
		object, _ := value.(map[string]any)
		value = object[below]
	}
	return canonical(path, value)
}

// canonical is the one text of a value, nil of an empty one. It is as Release 2 gives
// the value back: times with milliseconds, and object ids in lower case.
func canonical(path string, value any) (json.RawMessage, error) {
	if empty(value) {
		return nil, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	// Numbers of all types become one.
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	return json.Marshal(stored(plain, isID.MatchString(path[strings.LastIndexByte(path, '.')+1:])))
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

const timeLayout = "2006-01-02T15:04:05.000Z"

var (
	isID       = regexp.MustCompile(`^\w*_ids?$`)
	isObjectID = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)
	isTime     = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`)
)

// stored is a value as Release 2 stores it.
func stored(value any, underID bool) any {
	switch v := value.(type) {
	case string:
		if isTime.MatchString(v) {
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				return at.Format(timeLayout)
			}
		}
		if underID && isObjectID.MatchString(v) {
			return strings.ToLower(v)
		}
	case []any:
		for i, item := range v {
			v[i] = stored(item, underID)
		}
	case map[string]any:
		for key, item := range v {
			v[key] = stored(item, underID || isID.MatchString(key))
		}
	}
	return value
}

// hash is short for a value: "" for none.
func hash(value json.RawMessage) string {
	if value == nil {
		return ""
	}
	const bytesOfHash = 8
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:bytesOfHash])
}

// name is what people call the entity.
func (p Projection) name() string {
	var name string
	for _, path := range []string{"label", "name"} {
		if p[path] != nil && json.Unmarshal(p[path], &name) == nil {
			return name
		}
	}
	return ""
}

// hashes are those of all fields.
func (p Projection) hashes() map[string]string {
	all := make(map[string]string, len(p))
	for path, value := range p {
		all[path] = hash(value)
	}
	return all
}

// patch gives a document the values of some paths: those of p, or none. Objects keep the
// keys that are not among the paths.
func (p Projection) patch(d release2.Document, paths []string) (release2.Patch, error) {
	patch := release2.Patch{Set: map[string]any{}}
	for _, path := range paths {
		var value any
		if text := p[path]; text != nil {
			if err := json.Unmarshal(text, &value); err != nil {
				return patch, fmt.Errorf("field %s: %w", path, err)
			}
		}
		key, below, nested := strings.Cut(path, ".")
		if !nested {
			patch.Set[key] = value
			continue
		}
		object, changed := patch.Set[key].(map[string]any)
		if !changed {
			whole, _ := d[key].(map[string]any)
			object = maps.Clone(whole)
		}
		if object == nil {
			object = map[string]any{}
		}
		if object[below] = value; value == nil {
			delete(object, below)
		}
		patch.Set[key] = object
	}
	for key, value := range patch.Set {
		if empty(value) {
			delete(patch.Set, key)
			patch.Unset = append(patch.Unset, key)
		}
	}
	return patch, nil
}
