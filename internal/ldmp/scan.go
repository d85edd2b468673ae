package ldmp

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// scan reads a frame of the plainest form: a record with its fields and nothing
// else, without entities. It reports false for any other frame, good or bad, which
// the XML decoder then has the say on; that takes eight times as long.
func scan(frame []byte) (Record, bool) {
	if !plain(frame) {
		return Record{}, false
	}
	s := scanner{rest: string(frame)} // what the record keeps is part of this one string
	if !s.skip(`<?xml version="1.0" encoding="UTF-8"?>`) {
		s.skip(`<?xml version="1.0"?>`)
	}
	s.space()
	p := parser{record: Record{Fields: make([]Field, 0, strings.Count(s.rest, "<field"))}}
	empty, ok := s.element("record", &p.attributes)
	if !ok || p.start(p.attributes) != nil {
		return Record{}, false
	}
	for !empty {
		s.space()
		if s.skip("</record>") {
			break
		}
		value := ""
		emptyField, ok := s.element("field", &p.attributes)
		if ok && !emptyField {
			value, ok = s.until('<')
			ok = ok && s.skip("</field>")
		}
		if !ok {
			return Record{}, false
		}
		field := p.field(p.attributes)
		field.Value = value
		p.record.Fields = append(p.record.Fields, field)
	}
	s.space()
	if s.rest != "" || p.check() != nil {
		return Record{}, false
	}
	if len(p.record.Fields) == 0 {
		p.record.Fields = nil
	}
	return p.record, true
}

// plain reports whether text has nothing that XML treats in a way of its own:
// entities, carriage returns, characters that it has not.
func plain(frame []byte) bool {
	for _, c := range frame {
		if c == '&' || (c < ' ' && c != '\n' && c != '\t') {
			return false
		}
	}
	return utf8.Valid(frame) && !bytes.Contains(frame, []byte("\xef\xbf")) && !bytes.Contains(frame, []byte("]]>"))
}

type scanner struct{ rest string }

func (s *scanner) skip(text string) bool {
	rest, found := strings.CutPrefix(s.rest, text)
	s.rest = rest
	return found
}

func (s *scanner) space() bool {
	before := len(s.rest)
	s.rest = strings.TrimLeft(s.rest, " \t\n")
	return len(s.rest) < before
}

// until gives what is before a byte, which has to come.
func (s *scanner) until(end byte) (string, bool) {
	at := strings.IndexByte(s.rest, end)
	if at < 0 {
		return "", false
	}
	text := s.rest[:at]
	s.rest = s.rest[at:]
	return text, true
}

// element reads the tag that opens an element, and its attributes into a slice
// that is used again.
func (s *scanner) element(name string, attributes *[]attribute) (empty, ok bool) {
	*attributes = (*attributes)[:0]
	if !s.skip("<" + name) {
		return false, false
	}
	for {
		space := s.space()
		switch {
		case s.skip(">"):
			return false, true
		case s.skip("/>"):
			return true, true
		case !space:
			return false, false
		}
		key, found := s.until('=')
		if !found || !plainName(key) || len(s.rest) < 2 || (s.rest[1] != '"' && s.rest[1] != '\'') {
			return false, false
		}
		quote := s.rest[1]
		s.rest = s.rest[2:]
		value, found := s.until(quote)
		if !found || strings.IndexByte(value, '<') >= 0 {
			return false, false
		}
		s.rest = s.rest[1:]
		*attributes = append(*attributes, attribute{key, value})
	}
}

func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
		if !letter && (i == 0 || c != '-') {
			return false
		}
	}
	return name != ""
}
