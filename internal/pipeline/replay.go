package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// HeaderReplay marks a message that was published before, with the time (RFC
// 3339) at which it was published again.
const HeaderReplay = "Dendra-Replay"

// IsReplay reports whether a raw message was published before, by its header alone: a body is the
// vendor's, and may say anything.
func IsReplay(header map[string][]string) bool { return len(header[HeaderReplay]) > 0 }

// MarkReplay gives the body and header of a raw message that is published again:
// the context of its envelope gets replay and replayed_at, everything else stays
// as it is. A body that is no envelope is not changed and marked by the header
// alone.
func MarkReplay(body []byte, at time.Time) ([]byte, nats.Header) {
	at = at.UTC().Truncate(time.Second)
	header := nats.Header{HeaderReplay: []string{at.Format(time.RFC3339)}}
	var message map[string]json.RawMessage
	var context map[string]json.RawMessage
	if json.Unmarshal(body, &message) != nil || json.Unmarshal(message["context"], &context) != nil || context == nil {
		return body, header
	}
	context["replay"] = json.RawMessage("true")
	context["replayed_at"] = fmt.Appendf(nil, "%q", at.Format(time.RFC3339))
	// Written by hand, since an encoder would rewrite the payload.
	var b bytes.Buffer
	if err := appendObject(&b, context, "imported_at", "org_slug", "source", "location", "station", "table", "utc_offset", "replay", "replayed_at"); err != nil {
		return body, header
	}
	message["context"] = bytes.Clone(b.Bytes())
	b.Reset()
	if err := appendObject(&b, message, "context", "payload"); err != nil {
		return body, header
	}
	return b.Bytes(), header
}

// appendObject writes an object, the given keys first, its values verbatim.
func appendObject(b *bytes.Buffer, object map[string]json.RawMessage, first ...string) error {
	b.WriteByte('{')
	write := func(key string) error {
		value, found := object[key]
		if !found {
			return nil
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
		delete(object, key)
		return nil
	}
	for _, key := range first {
		if err := write(key); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if err := write(key); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
