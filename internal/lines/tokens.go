package lines

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const (
	// maxName bounds names and values of tags here; longer ones are rare, and the
	// series key, to which they add up, has a limit.
	maxName = 256
	maxTags = 32
	// maxMillis bounds times in milliseconds: they are 200 days further in than what
	// InfluxDB takes.
	maxMillis = 9_200_000_000_000
	// maxNumber is how long a number may be to be written as it is.
	maxNumber = 24
)

// read reads a message token by token. It reports false for anything that is out
// of the ordinary.
func (d *Decoder) read(body []byte) bool {
	d.buffer = *bytes.NewBuffer(body)
	d.tokens.Reset(&d.buffer)
	payload := false
	ok := d.object(func(name []byte) bool {
		switch string(name) {
		case "context":
			return d.context()
		case "payload":
			payload = true
			return d.payload()
		}
		return false
	})
	if !ok || !payload {
		return false
	}
	// Nothing may follow.
	return d.tokens.PeekKind() == 0 && d.tokens.InputOffset()+int64(len(d.tokens.UnreadBuffer())) == int64(len(body)) &&
		len(bytes.TrimLeft(d.tokens.UnreadBuffer(), " \t\r\n")) == 0
}

// object reads an object, and calls member after each name, which is without
// quotes and escapes. The name is valid until the next token is read.
func (d *Decoder) object(member func(name []byte) bool) bool {
	if !d.token('{') {
		return false
	}
	for d.tokens.PeekKind() == '"' {
		name, ok := d.text()
		if !ok || !member(name) {
			return false
		}
	}
	return d.token('}')
}

func (d *Decoder) token(kind jsontext.Kind) bool {
	if d.tokens.PeekKind() != kind {
		return false
	}
	_, err := d.tokens.ReadToken()
	return err == nil
}

// text reads a string that has no escapes, and gives what is between its quotes.
func (d *Decoder) text() ([]byte, bool) {
	if d.tokens.PeekKind() != '"' {
		return nil, false
	}
	raw, err := d.tokens.ReadValue()
	if err != nil || bytes.IndexByte(raw, '\\') >= 0 {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// context checks the context as pipeline.Context is read; nothing of it is needed.
func (d *Decoder) context() bool {
	return d.object(func(name []byte) bool {
		switch string(name) {
		case "imported_at", "replayed_at":
			value, ok := d.text()
			if !ok {
				return false
			}
			var t time.Time
			return t.UnmarshalText(value) == nil && t.Year() > 0 && t.Year() < 9999 // in any zone one that can be written
		case "org_slug", "source", "location", "station", "table", "utc_offset", "storage_database", "storage_table":
			_, ok := d.text()
			return ok
		case "replay":
			kind := d.tokens.PeekKind()
			return (kind == 't' || kind == 'f') && d.token(kind)
		}
		return !pipeline.IsContextKey(string(name)) && d.tokens.SkipValue() == nil
	})
}

func (d *Decoder) payload() bool {
	options, points := false, false
	ok := d.object(func(name []byte) bool {
		switch string(name) {
		case "options":
			options = true
			return d.pointOptions()
		case "points":
			points = options // whose precision is needed
			return points && d.points()
		}
		return false
	})
	return ok && points
}

// pointOptions reads the options, which seldom differ from those of the message
// before.
func (d *Decoder) pointOptions() bool {
	if d.tokens.PeekKind() != '{' {
		return false
	}
	raw, err := d.tokens.ReadValue()
	if err != nil {
		return false
	}
	if d.options != nil && bytes.Equal(raw, d.options) {
		return true
	}
	var options pipeline.PointOptions
	if json.Unmarshal(raw, &options) != nil {
		return false
	}
	if options.Precision == "" {
		options.Precision = "ms"
	}
	if options.Check() != nil {
		return false
	}
	d.message.Options, d.options = options, append([]byte(nil), raw...)
	return true
}

func (d *Decoder) points() bool {
	if !d.token('[') {
		return false
	}
	for d.tokens.PeekKind() == '{' {
		if !d.point() {
			return false
		}
		d.message.Ends = append(d.message.Ends, len(d.message.Text))
	}
	return d.token(']') && len(d.message.Ends) > 0
}

// point reads a point whose members come in the order of a line.
func (d *Decoder) point() bool {
	before := "" // the member before
	ok := d.object(func(name []byte) bool {
		last := before
		switch string(name) {
		case "measurement":
			before = "measurement"
			return last == "" && d.measurement()
		case "tags":
			before = "tags"
			return last == "measurement" && d.tags()
		case "fields":
			before = "fields"
			return (last == "measurement" || last == "tags") && d.fields()
		case "time":
			before = "time"
			return last == "fields" && d.time()
		}
		return false
	})
	return ok && before == "time"
}

func (d *Decoder) measurement() bool {
	name, ok := d.text()
	if !ok || !plain(name) || name[0] == '#' {
		return false
	}
	d.message.Text = appendEscaped(d.message.Text, name, false)
	return true
}

func (d *Decoder) tags() bool {
	n := 0
	return d.object(func(name []byte) bool {
		if n++; n > maxTags || !plain(name) || reserved(name) {
			return false
		}
		start := len(d.message.Text)
		text := append(d.message.Text, ',')
		text = append(appendEscaped(text, name, true), '=')
		value, ok := d.text()
		if !ok {
			return false
		}
		if len(value) == 0 {
			d.message.Text = text[:start] // the same as none
			return true
		}
		if !plain(value) {
			return false
		}
		d.message.Text = appendEscaped(text, value, true)
		return true
	})
}

func (d *Decoder) fields() bool {
	separator := byte(' ')
	ok := d.object(func(name []byte) bool {
		if !plain(name) || reserved(name) {
			return false
		}
		start := len(d.message.Text)
		text := append(d.message.Text, separator)
		text = append(appendEscaped(text, name, true), '=')
		treatment := d.treat(name)
		kind := d.tokens.PeekKind()
		value, err := d.tokens.ReadValue()
		if err != nil {
			return false
		}
		if treatment != keep && kind != 'n' && (treatment == drop || kind != '0') {
			number, ok := 0.0, false
			if kind == '"' && treatment == makeNumber {
				if bytes.IndexByte(value, '\\') >= 0 {
					return false
				}
				number, ok = leadingNumber(string(value[1 : len(value)-1]))
			}
			if !ok {
				d.message.Dropped++
				d.message.Text = text[:start]
				return true
			}
			d.message.Text, separator = strconv.AppendFloat(text, number, 'g', -1, 64), ','
			return true
		}
		switch kind {
		case 'n':
			d.message.Text = text[:start]
			return true
		case '0':
			if len(value) > maxNumber || bytes.ContainsAny(value, "eE") {
				number, err := strconv.ParseFloat(string(value), 64)
				if err != nil {
					return false
				}
				text = strconv.AppendFloat(text, number, 'g', -1, 64)
			} else {
				text = append(text, value...) // the server reads it as we would
			}
		case '"':
			if bytes.IndexByte(value, '\\') >= 0 {
				return false
			}
			text = append(text, value...)
		case 't', 'f':
			text = append(text, value...)
		default:
			return false
		}
		d.message.Text, separator = text, ','
		return true
	})
	return ok && separator == ','
}

func (d *Decoder) time() bool {
	if d.tokens.PeekKind() != '0' {
		return false
	}
	value, err := d.tokens.ReadValue()
	if err != nil {
		return false
	}
	millis, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || millis < -maxMillis || millis > maxMillis {
		return false
	}
	if d.message.Options.Precision == "s" {
		millis = time.UnixMilli(millis).Unix()
	}
	text := append(d.message.Text, ' ')
	d.message.Text = append(strconv.AppendInt(text, millis, 10), '\n')
	return true
}

// plain reports whether a name is of printable ASCII characters without a backslash,
// and neither empty nor long.
func plain(name []byte) bool {
	for _, c := range name {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxName
}

func reserved(name []byte) bool {
	return string(name) == "time" || string(name) == "_field" || string(name) == "_measurement"
}

func appendEscaped(dst, name []byte, key bool) []byte {
	for _, c := range name {
		if c == ',' || c == ' ' || (key && c == '=') {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}
