package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Context says where a message comes from.
type Context struct {
	// ImportedAt is when the data was read from the vendor.
	ImportedAt time.Time `json:"imported_at"`
	// OrgSlug names the organization.
	OrgSlug string `json:"org_slug"`
	// Source is the kind of vendor interface: hobolink, csi.
	Source string `json:"source,omitempty"`
	// Location names the group of stations that prepared data is stored with.
	Location string `json:"location,omitempty"`
	// Station and Table name the series within the organization; the table of a
	// HOBO logger is its serial number.
	Station string `json:"station,omitempty"`
	Table   string `json:"table,omitempty"`
	// UTCOffset is how far the clock of the payload's times is ahead of UTC, where
	// those have no zone.
	UTCOffset UTCOffset `json:"utc_offset,omitempty"`
	// Replay marks data that was published before: it is not archived again.
	Replay bool `json:"replay,omitempty"`
	// ReplayedAt is when it was published again.
	ReplayedAt time.Time `json:"replayed_at,omitzero"`
	// StorageDatabase and StorageTable are the database and the measurement of the
	// message's points, instead of those that whoever prepares it would take.
	StorageDatabase string `json:"storage_database,omitempty"`
	StorageTable    string `json:"storage_table,omitempty"`
	// Other has the keys that nothing here reads, such as document_id, upload_id,
	// file_name and is_invalid: a message that is made of another one keeps them.
	Other map[string]json.RawMessage `json:"-"`
}

// CheckStorage reports names that InfluxDB would not take.
func (c Context) CheckStorage() error {
	if c.StorageDatabase != "" {
		if err := CheckStoreName("context.storage_database", c.StorageDatabase); err != nil {
			return err
		}
	}
	if strings.ContainsAny(c.StorageTable, "\r\n") {
		return fmt.Errorf("context.storage_table %.40q has a line break", c.StorageTable)
	}
	return nil
}

// contextKeys are the keys that the fields of Context read.
var contextKeys = map[string]bool{
	"imported_at": true, "org_slug": true, "source": true, "location": true, "station": true, "table": true,
	"utc_offset": true, "replay": true, "replayed_at": true, "storage_database": true, "storage_table": true,
}

// plainContext has the fields of Context without its methods.
type plainContext Context

// MarshalJSON writes the keys of the fields, in their order, and then the others.
func (c Context) MarshalJSON() ([]byte, error) {
	body, err := Marshal(plainContext(c)) // whether to escape is up to who encodes the whole
	if err != nil || len(c.Other) == 0 {
		return body, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(body, []byte("}")))
	for _, key := range slices.Sorted(maps.Keys(c.Other)) {
		if IsContextKey(key) {
			continue // the field has the say
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		if !json.Valid(c.Other[key]) {
			return nil, fmt.Errorf("context key %q: its value is no JSON", key)
		}
		b.WriteByte(',')
		b.Write(name)
		b.WriteByte(':')
		b.Write(c.Other[key])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object; what is none of the fields goes to Other. Times are in UTC
// then: one with an offset of a day can be read, and not be written.
func (c *Context) UnmarshalJSON(data []byte) error {
	var plain plainContext
	if err := jsonv1.Unmarshal(data, &plain); err != nil {
		return err
	}
	plain.ImportedAt, plain.ReplayedAt = plain.ImportedAt.UTC(), plain.ReplayedAt.UTC()
	if !isWritable(plain.ImportedAt) || !isWritable(plain.ReplayedAt) {
		return errors.New("context.imported_at or context.replayed_at is not in the years 0 to 9999")
	}
	*c = Context(plain)
	if !hasOtherKeys(data) {
		return nil
	}
	var other map[string]json.RawMessage
	if err := json.Unmarshal(data, &other); err != nil {
		return err
	}
	maps.DeleteFunc(other, func(key string, _ json.RawMessage) bool { return IsContextKey(key) })
	if len(other) > 0 {
		c.Other = other
	}
	return nil
}

// isWritable reports whether RFC 3339 can write a time in UTC.
func isWritable(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// IsContextKey reports whether a field of [Context] reads the key, as encoding/json matches
// them: without regard to case.
func IsContextKey(key string) bool {
	if contextKeys[key] {
		return true
	}
	for known := range contextKeys {
		if strings.EqualFold(known, key) {
			return true
		}
	}
	return false
}

// hasOtherKeys reports whether an object, which is valid JSON, may have keys that no
// field reads. Most messages have none, and are spared a second decoding.
func hasOtherKeys(object []byte) bool {
	depth, key := 0, false
	for i := 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
			key = depth == 1
		case '}', ']':
			depth--
		case ',':
			key = depth == 1
		case '"':
			start := i + 1
			for i++; i < len(object) && object[i] != '"'; i++ {
				if object[i] == '\\' {
					i++
				}
			}
			if key && !contextKeys[string(object[start:min(i, len(object))])] {
				return true
			}
			key = false
		}
	}
	return false
}
