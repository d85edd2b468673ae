package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Message is the envelope of a raw or prepared message: {"context":…,"payload":…}.
type Message[P any] struct {
	Context Context `json:"context"`
	Payload P       `json:"payload"`
}

// Points is the payload of a prepared message.
type Points struct {
	Options PointOptions `json:"options"`
	Points  []Point      `json:"points"`
}

// PointOptions say where the points of a message belong.
type PointOptions struct {
	Database string `json:"database"`
	// Precision is the resolution of time in the store: s or ms. Defaults to ms.
	Precision string `json:"precision,omitempty"`
	// RetentionPolicy is the policy of the database. Defaults to the database's
	// own default.
	RetentionPolicy string `json:"retentionPolicy,omitempty"`
}

// Check reports options that InfluxDB could not follow: a missing database, a name that
// it takes for no database or retention policy, or a precision that there is not.
func (o PointOptions) Check() error {
	switch {
	case o.Database == "":
		return errors.New("payload.options.database is missing")
	case o.Precision != "ms" && o.Precision != "s":
		return fmt.Errorf("payload.options.precision %q is neither ms nor s", o.Precision)
	}
	if err := CheckStoreName("payload.options.database", o.Database); err != nil {
		return err
	}
	if o.RetentionPolicy == "" {
		return nil
	}
	return CheckStoreName("payload.options.retentionPolicy", o.RetentionPolicy)
}

// maxStoreName is the most bytes of a name that InfluxDB takes.
const maxStoreName = 255

// CheckStoreName reports why InfluxDB 1.x takes a name for no database or retention
// policy: it takes 1 to 255 bytes of printable characters without '/' and '\', and
// neither "." nor "..". What names the name in the error: "database".
func CheckStoreName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty", what)
	case len(name) > maxStoreName:
		return fmt.Errorf("%s %.40q… has %d bytes, more than the %d of an InfluxDB name", what, name, len(name), maxStoreName)
	case name == "." || name == "..":
		return fmt.Errorf("%s %q is no InfluxDB name", what, name)
	case strings.ContainsAny(name, `/\`):
		return fmt.Errorf("%s %q has a slash or a backslash, which InfluxDB takes in no name", what, name)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %q has a character that is not printable, which InfluxDB takes in no name", what, name)
	}
	return nil
}

// Point is one row of a time series.
type Point struct {
	Measurement string `json:"measurement"`
	Tags        Tags   `json:"tags,omitempty"`
	// Fields are numbers, strings and booleans; a number is always a float64.
	Fields map[string]any `json:"fields"`
	Time   Time           `json:"time"`
}

// Tags are labels of a point. In JSON a value may also be a number or a boolean, as in
// messages of Release 2: its text is the tag's value. Null is no tag.
type Tags map[string]string

// UnmarshalJSON reads an object of strings, numbers and booleans.
func (t *Tags) UnmarshalJSON(data []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil || values == nil {
		return err
	}
	tags := make(Tags, len(values))
	for name, value := range values {
		switch value[0] {
		case '{', '[':
			return fmt.Errorf("tag %.100q is neither a string nor a number: %.100s", name, value)
		case '"':
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return err
			}
			tags[name] = text
		case 'n':
		default:
			tags[name] = string(value)
		}
	}
	*t = tags
	return nil
}

// Time is a moment in a prepared message. It is written as milliseconds since
// the Unix epoch, whatever the precision of the message, and read from that or
// from RFC 3339.
type Time struct{ time.Time }

// MarshalJSON writes milliseconds since the Unix epoch.
func (t Time) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, t.UnixMilli(), 10), nil
}

// UnmarshalJSON reads milliseconds since the Unix epoch, or an RFC 3339 string.
func (t *Time) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		parsed, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("time %q is neither milliseconds since 1970 nor RFC 3339", text)
		}
		t.Time = parsed.UTC()
		return nil
	}
	millis, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return fmt.Errorf("time %s is neither milliseconds since 1970 nor RFC 3339", data)
	}
	t.Time = time.UnixMilli(millis).UTC()
	return nil
}

// Encode writes a message as compact JSON. An error means that a payload holds
// what JSON cannot, such as a NaN.
func (m Message[P]) Encode() ([]byte, error) {
	payload, err := Marshal(m.Payload)
	if err != nil {
		return nil, fmt.Errorf("encode a message of station %q, table %q: %w", m.Context.Station, m.Context.Table, err)
	}
	return Envelope(m.Context, payload)
}

// Envelope writes a message of a payload that is encoded already.
func Envelope(context Context, payload []byte) ([]byte, error) {
	encoded, err := context.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the context of station %q, table %q: %w", context.Station, context.Table, err)
	}
	return slices.Concat([]byte(`{"context":`), encoded, []byte(`,"payload":`), payload, []byte("}")), nil
}

// Marshal does what json.Marshal does, in less time, but for characters of HTML: units such as
// m/s<2> stay readable.
func Marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := jsonv1.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal does what json.Unmarshal does, in less time, but for a body that is not UTF-8: it is refused. The
// package would put replacement characters into it.
func Unmarshal(body []byte, into any) error {
	if at := invalidUTF8(body); at >= 0 {
		return fmt.Errorf("it is not UTF-8: byte %#02x at offset %d", body[at], at)
	}
	return jsonv1.Unmarshal(body, into)
}

// invalidUTF8 is the offset of the first byte that is not UTF-8, -1 if there is none.
func invalidUTF8(body []byte) int {
	if utf8.Valid(body) {
		return -1
	}
	at := 0
	for {
		char, size := utf8.DecodeRune(body[at:])
		if char == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// DecodePoints reads a prepared message. It reports a body that is no envelope
// of points, and what [PointOptions.Check] reports.
func DecodePoints(body []byte) (Message[Points], error) {
	var message Message[Points]
	if err := Unmarshal(body, &message); err != nil {
		return message, fmt.Errorf("not a prepared message: %w", err)
	}
	options := &message.Payload.Options
	if options.Precision == "" {
		options.Precision = "ms"
	}
	if len(message.Payload.Points) == 0 {
		return message, errors.New("not a prepared message: payload.points is missing or empty")
	}
	return message, options.Check()
}

// ID is a digest of what makes a message unique, for [Outgoing.ID]. The time of
// import must not be among the parts, since it differs in every repeat.
func ID(parts ...string) string {
	hash := sha256.New()
	var length [8]byte
	for _, part := range parts {
		// The length keeps ("ab","c") and ("a","bc") apart.
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = hash.Write(length[:])
		_, _ = hash.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16])
}
