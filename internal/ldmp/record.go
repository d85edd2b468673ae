package ldmp

import (
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Source names the vendor in subjects and contexts of raw messages.
const Source = "csi"

// Record is one row of a logger's table, as its server tells it. In JSON it is
// the payload of a raw message.
type Record struct {
	// Number counts the records of a table, and begins again when the table is reset.
	Number  int64  `json:"recordNumber"`
	Station string `json:"station"`
	Table   string `json:"table"`
	// Time is the logger's clock as sent: 2018-12-24T07:00:00, maybe with a
	// fraction, without a zone.
	Time   string  `json:"timeString"`
	Fields []Field `json:"fields"`
}

// Field is one value of a record.
type Field struct {
	// Name defaults to col_<n>, counted from 1.
	Name string `json:"name"`
	// Process is how the logger made the value: Smp, Avg, Max, Min, Std, Tot.
	Process string `json:"process,omitempty"`
	// Type is an XML schema type: xsd:float.
	Type string `json:"type,omitempty"`
	// Units as the logger's program names them.
	Units string `json:"units,omitempty"`
	// Value is the text as sent; empty where the record has none. In JSON it may also
	// be a number, as in the messages of Release 2, or null.
	Value string `json:"value,omitempty"`
	// Number says that the value came as a number of JSON, and not as the logger's
	// text: what was behind the number in that text is lost.
	Number bool `json:"-"`
}

// UnmarshalJSONFrom also takes numbers, and null, for values: by pipeline.Unmarshal. The package
// encoding/json takes strings alone.
func (r *Record) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	type plain Record
	type field struct {
		Field

		Value fieldValue `json:"value"`
	}
	read := struct {
		*plain
		Fields []field `json:"fields"`
	}{plain: (*plain)(r)}
	if err := jsonv2.UnmarshalDecode(from, &read); err != nil {
		return err
	}
	r.Fields = make([]Field, len(read.Fields))
	for i, f := range read.Fields {
		r.Fields[i] = f.Field
		r.Fields[i].Value, r.Fields[i].Number = f.Value.text, f.Value.number
	}
	return nil
}

// fieldValue is a value in JSON.
type fieldValue struct {
	text   string
	number bool
}

// UnmarshalJSONFrom reads a string, a number or null.
func (v *fieldValue) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	switch kind := from.PeekKind(); kind {
	case '"', '0':
		token, err := from.ReadToken()
		if err != nil {
			return err
		}
		v.text, v.number = token.String(), kind == '0'
		return nil
	}
	return jsonv2.UnmarshalDecode(from, &v.text)
}

// Clock reads the record's time, as if the logger's clock showed UTC. [At] gives
// the moment.
func (r Record) Clock() (time.Time, error) { return ParseClock(r.Time) }

// clockLayout also takes a fraction of a second.
const clockLayout = "2006-01-02T15:04:05"

// ParseClock reads a record's time as if it were in UTC.
func ParseClock(text string) (time.Time, error) {
	// The layout takes a comma before the fraction as well, which is not the form.
	clock, err := time.Parse(clockLayout, text)
	if err != nil || strings.Contains(text, ",") {
		return time.Time{}, fmt.Errorf("time %.60q is not of the form YYYY-MM-DDTHH:MM:SS", text)
	}
	return clock, nil
}

// At is the moment at which a clock that is offset ahead of UTC shows a reading.
func At(clock time.Time, offset time.Duration) time.Time { return clock.Add(-offset).UTC() }

// ClockAt is what a clock that is offset ahead of UTC shows at a moment.
func ClockAt(at time.Time, offset time.Duration) time.Time { return at.UTC().Add(offset) }
