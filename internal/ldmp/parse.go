package ldmp

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse reads the record in a frame: the one element named record, wherever in
// the frame it is. The error is a [*MalformedError], which keeps the frame.
//
// Text that is not UTF-8 is read as ISO 8859-1: programs of loggers name units
// such as °C in the encoding of the computer that they were written on.
func Parse(frame []byte) (Record, error) {
	if record, ok := scan(frame); ok {
		return record, nil
	}
	record, err := decode(frame)
	if err != nil {
		return Record{}, &MalformedError{
			Reason: err.Error(), Raw: bytes.Clone(frame), Station: record.Station, Table: record.Table,
		}
	}
	return record, nil
}

// decode reads any frame. It returns what it has read of the record also with an
// error.
func decode(frame []byte) (Record, error) {
	if !utf8.Valid(frame) {
		frame = fromLatin1(frame)
	}
	var p parser
	err := p.decode(frame)
	return p.record, err
}

// attribute is one of an element, without the prefix of a namespace.
type attribute struct{ name, value string }

type parser struct {
	attributes []attribute
	record     Record
	found      bool
}

func (p *parser) decode(text []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.CharsetReader = asDeclared
	var open []string // elements around the current place
	var field *Field  // the one that is open
	var value strings.Builder
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "XML syntax error on "))
		}
		switch t := token.(type) {
		case xml.StartElement:
			if field != nil {
				return fmt.Errorf("field %d has an element inside", len(p.record.Fields)+1)
			}
			within := len(open) > 0 && open[len(open)-1] == "record"
			switch {
			case t.Name.Local == "record":
				if err := p.start(p.of(t)); err != nil {
					return err
				}
			case t.Name.Local == "field" && within:
				f := p.field(p.of(t))
				field = &f
				value.Reset()
			}
			open = append(open, t.Name.Local)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != t.Name.Local {
				return fmt.Errorf("element %.40q ends where it was not open", t.Name.Local)
			}
			open = open[:len(open)-1]
			if field != nil {
				field.Value = value.String()
				p.record.Fields = append(p.record.Fields, *field)
				field = nil
			}
		case xml.CharData:
			if field != nil {
				_, _ = value.Write(t)
			}
		}
	}
	switch {
	case len(open) > 0:
		return fmt.Errorf("element %.40q does not end", open[len(open)-1])
	case !p.found:
		return errors.New("it has no element named record")
	}
	return p.check()
}

// of gives the attributes of an element, in a slice that is used again.
func (p *parser) of(element xml.StartElement) []attribute {
	p.attributes = p.attributes[:0]
	for _, a := range element.Attr {
		if a.Name.Space == "" {
			p.attributes = append(p.attributes, attribute{a.Name.Local, a.Value})
		}
	}
	return p.attributes
}

// start reads the attributes of the record.
func (p *parser) start(attributes []attribute) error {
	if p.found {
		return errors.New("it has more than one record")
	}
	p.found = true
	p.record.Number = -1
	for _, a := range attributes {
		switch a.name {
		case "record-no":
			number, err := strconv.ParseInt(a.value, 10, 64)
			if err != nil || number < 0 {
				return fmt.Errorf("record-no %.40q is not a number of a record", a.value)
			}
			p.record.Number = number
		case "station":
			p.record.Station = a.value
		case "table":
			p.record.Table = a.value
		case "time":
			p.record.Time = a.value
		}
	}
	return nil
}

func (p *parser) field(attributes []attribute) Field {
	var f Field
	for _, a := range attributes {
		switch a.name {
		case "name":
			f.Name = a.value
		case "process":
			f.Process = a.value
		case "type":
			f.Type = a.value
		case "units":
			f.Units = a.value
		}
	}
	if f.Name == "" {
		f.Name = "col_" + strconv.Itoa(len(p.record.Fields)+1)
	}
	return f
}

func (p *parser) check() error {
	switch {
	case p.record.Station == "":
		return errors.New("the record has no station")
	case p.record.Table == "":
		return errors.New("the record has no table")
	case p.record.Number < 0:
		return errors.New("the record has no record-no")
	}
	_, err := p.record.Clock()
	return err
}

// asDeclared reads text whose prolog names an encoding. What it is was settled
// before, and of other encodings nothing is known.
func asDeclared(label string, input io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "iso-8859-1", "windows-1252", "us-ascii":
		return input, nil
	}
	return nil, fmt.Errorf("its encoding %.40q is not known", label)
}

func fromLatin1(text []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(text) + len(text)/8)
	for _, c := range text {
		_, _ = b.WriteRune(rune(c))
	}
	return b.Bytes()
}
