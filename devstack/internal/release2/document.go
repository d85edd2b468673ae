package release2

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"strings"
	"time"
)

// document is a JSON object.
type document map[string]any

const timeLayout = "2006-01-02T15:04:05.000Z"

var (
	idKey    = regexp.MustCompile(`^\w*_ids?$`)
	objectID = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)
	isoTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`)
)

// newObjectID is an id as MongoDB makes them: a time and random digits.
func newObjectID(now time.Time) string {
	id := make([]byte, 12)
	_, _ = rand.Read(id) // never fails
	binary.BigEndian.PutUint32(id, uint32(now.Unix()))
	return hex.EncodeToString(id)
}

// coerce has strings as they come back from the database: ids under keys of ids, and
// times with milliseconds.
func coerce(value any, underID bool) any {
	switch v := value.(type) {
	case document:
		return coerceObject(v, underID)
	case map[string]any:
		return map[string]any(coerceObject(v, underID))
	case []any:
		coerced := make([]any, len(v))
		for i, item := range v {
			coerced[i] = coerce(item, underID)
		}
		return coerced
	case string:
		return coerceString(v, underID)
	default:
		return value
	}
}

func coerceObject(v document, underID bool) document {
	coerced := make(document, len(v))
	for key, item := range v {
		coerced[key] = coerce(item, underID || idKey.MatchString(key))
	}
	return coerced
}

func coerceString(text string, underID bool) string {
	if isoTime.MatchString(text) {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at.UTC().Format(timeLayout)
		}
	}
	if underID && objectID.MatchString(text) {
		return strings.ToLower(text)
	}
	return text
}

// dropped are keys that creates and updates may hold, and that are not written: the
// server sets them, or adds them to what it answers.
var dropped = []string{
	"_include", "access_levels_resolved", "config_built_lookup", "created_at", "created_by", "datastream",
	"general_config_resolved", "hashes", "organization", "organization_lookup", "station", "station_lookup",
	"terms_info", "updated_at", "updated_by", "version_id",
}

// prepared is a document of a create or update with defaults and without dropped keys.
func (s *service) prepared(given document) document {
	d := maps.Clone(given)
	for _, key := range dropped {
		delete(d, key)
	}
	for key, value := range s.defaults {
		if _, ok := d[key]; !ok {
			d[key] = value
		}
	}
	if s.name == "vocabularies" {
		if _, ok := d["vocabulary_type"]; !ok {
			d["vocabulary_type"] = "class"
			if d["label"] == "Unit" {
				d["vocabulary_type"] = "unit"
			}
		}
	}
	return d
}
