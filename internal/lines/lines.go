// Package lines turns prepared messages of the pipeline into line protocol.
//
// A message as this project writes it is read token by token, and its points are
// written as lines on the way, without maps. Whatever is out of the ordinary (keys
// in another order or unknown, escapes, names beyond ASCII, values that do not fit)
// makes the message be read once more by [pipeline.DecodePoints] and its points be
// written by [influx.AppendPoint]: these two decide what is good, and why not.
package lines

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// Message is a prepared message as line protocol.
type Message struct {
	// Options say where the points belong.
	Options pipeline.PointOptions
	// Text holds the lines of all points, in their order.
	Text []byte
	// Ends has the end in Text of each point's line; that of a refused point is
	// empty.
	Ends []int
	// Refused are the points that line protocol cannot carry.
	Refused []Refused
	// Dropped counts the fields that the rules left out, and Emptied the points of which
	// they left none; the lines of these are empty.
	Dropped, Emptied int
}

// Refused is a point that line protocol cannot carry.
type Refused struct {
	Point int // counted from 0
	Err   error
}

// Decoder reads messages. It keeps its buffers, and is not safe for concurrent use.
type Decoder struct {
	message Message
	buffer  bytes.Buffer
	tokens  *jsontext.Decoder

	options []byte // the options that message.Options was read from
	rules   Rules
	known   map[string]treatment // of names of fields

	swift, thorough int
}

// NewDecoder makes a decoder that changes fields by rules.
func NewDecoder(rules Rules) *Decoder {
	d := &Decoder{rules: rules, known: map[string]treatment{}}
	d.tokens = jsontext.NewDecoder(&d.buffer)
	return d
}

// Decode reads a message. What it returns is valid until the next call. The error
// is that of [pipeline.DecodePoints].
func (d *Decoder) Decode(body []byte) (*Message, error) {
	m := &d.message
	m.Text, m.Ends, m.Refused, m.Dropped, m.Emptied = m.Text[:0], m.Ends[:0], m.Refused[:0], 0, 0
	if d.read(body) {
		d.swift++
		return m, nil
	}
	d.thorough++
	return m, d.readThoroughly(body)
}

// Paths counts the messages that were read token by token, and those that were
// read as a whole.
func (d *Decoder) Paths() (swift, thorough int) { return d.swift, d.thorough }

func (d *Decoder) readThoroughly(body []byte) error {
	m := &d.message
	m.Text, m.Ends, m.Refused, m.Dropped, m.Emptied = m.Text[:0], m.Ends[:0], m.Refused[:0], 0, 0
	decoded, err := pipeline.DecodePoints(body)
	if err != nil {
		return err
	}
	m.Options, d.options = decoded.Payload.Options, nil
	for i, p := range decoded.Payload.Points {
		if d.apply(p.Fields) {
			m.Emptied++
			m.Ends = append(m.Ends, len(m.Text))
			continue
		}
		text, err := influx.AppendPoint(m.Text, influx.Point{
			Measurement: p.Measurement, Tags: p.Tags, Fields: p.Fields, Time: p.Time.Time,
		}, influx.Precision(m.Options.Precision))
		if err != nil {
			m.Refused = append(m.Refused, Refused{Point: i, Err: err})
		}
		m.Text = text
		m.Ends = append(m.Ends, len(m.Text))
	}
	return nil
}
