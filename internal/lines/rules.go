package lines

import (
	"regexp"
	"slices"
	"strconv"
)

// Rules change the fields of points, by their names.
type Rules struct {
	// Number matches fields in which a string is read as Release 2 read it: the number
	// that it begins with, as parseFloat of JavaScript finds it. One that begins with
	// none is left out, and so is a boolean.
	Number []*regexp.Regexp
	// Drop matches fields that are left out.
	Drop []*regexp.Regexp
}

// treatment is what the rules do with a field.
type treatment int

const (
	keep treatment = iota
	drop
	makeNumber
)

// maxKnown bounds the names of which the treatment is remembered.
const maxKnown = 10_000

// treat tells what the rules do with a field.
func (d *Decoder) treat(name []byte) treatment {
	if len(d.rules.Number) == 0 && len(d.rules.Drop) == 0 {
		return keep
	}
	if t, known := d.known[string(name)]; known {
		return t
	}
	matches := func(pattern *regexp.Regexp) bool { return pattern.Match(name) }
	t := keep
	switch {
	case slices.ContainsFunc(d.rules.Drop, matches):
		t = drop
	case slices.ContainsFunc(d.rules.Number, matches):
		t = makeNumber
	}
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[string(name)] = t
	return t
}

// apply changes the fields of a point, and reports whether it has left none of them.
func (d *Decoder) apply(fields map[string]any) (emptied bool) {
	dropped := 0
	for name, value := range fields {
		if value == nil {
			continue
		}
		t := d.treat([]byte(name))
		if t == keep {
			continue
		}
		if t == makeNumber {
			if _, ok := value.(float64); ok {
				continue
			}
			if text, ok := value.(string); ok {
				if number, ok := leadingNumber(text); ok {
					fields[name] = number
					continue
				}
			}
		}
		delete(fields, name)
		dropped++
	}
	d.message.Dropped += dropped
	for _, value := range fields {
		if value != nil {
			return false
		}
	}
	return dropped > 0
}

// numberPattern finds what parseFloat of JavaScript reads, but Infinity.
var numberPattern = regexp.MustCompile(`^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)`)

// leadingNumber is the number that a text begins with.
func leadingNumber(text string) (float64, bool) {
	found := numberPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, false
	}
	number, err := strconv.ParseFloat(found[1], 64)
	return number, err == nil
}
