package influx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// rowsOfAChunk is how many rows the server gathers before it sends them.
const rowsOfAChunk = "5000"

// Rows runs a query that selects columns of one measurement, and calls take for each row in
// the order of the answer: at is in nanoseconds since 1970, and values are in the order of
// the columns, as JSON. They are valid until take returns. The answer is never held in memory,
// and has ten minutes unless the configuration has a timeout. The error is an [*Error], wraps
// [ErrNoDatabase], or is that of take.
func Rows(ctx context.Context, config Config, database, command string, columns int, take func(at int64, values []jsontext.Value) error) error {
	base, err := parseURL(config.URL)
	if err != nil {
		return err
	}
	config.Timeout = cmp.Or(config.Timeout, 10*time.Minute)
	query := url.Values{"q": {command}, "db": {database}, "epoch": {"ns"}, "chunked": {"true"}, "chunk_size": {rowsOfAChunk}}
	r := rowReader{take: take, values: make([]jsontext.Value, columns), ends: make([]int, columns)}
	err = config.send(ctx, base, query, r.read)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.refused != nil:
		return r.refused
	}
	return config.schemaError(base, database, err)
}

// Selection is a query for [Rows] of the fields of a measurement from a time on, until another
// one, with a function around each field unless it is "". A zero time is no bound.
func Selection(function string, fields []string, measurement string, from, to time.Time) string {
	columns := make([]string, len(fields))
	for i, field := range fields {
		if columns[i] = QuoteIdentifier(field); function != "" {
			columns[i] = function + "(" + columns[i] + ")"
		}
	}
	if from.IsZero() {
		from = minTime
	}
	if to.IsZero() {
		to = maxTime
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE time >= %d AND time < %d",
		strings.Join(columns, ","), QuoteIdentifier(measurement), from.UnixNano(), to.UnixNano())
}

// rowReader reads the chunks of an answer.
type rowReader struct {
	*jsontext.Decoder
	take    func(at int64, values []jsontext.Value) error
	refused error // by take

	values []jsontext.Value
	ends   []int // of the values in text
	text   []byte
}

func (r *rowReader) read(body io.Reader) error {
	r.Decoder = jsontext.NewDecoder(body)
	for {
		err := r.object(map[string]func() error{
			"error":   r.failure,
			"results": func() error { return r.array(r.result) },
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *rowReader) result() error {
	return r.object(map[string]func() error{
		"error":  r.failure,
		"series": func() error { return r.array(r.series) },
	})
}

func (r *rowReader) series() error {
	return r.object(map[string]func() error{"values": func() error { return r.array(r.row) }})
}

// failure reads an error of the server.
func (r *rowReader) failure() error {
	text, err := r.ReadToken()
	if err != nil {
		return unreadable(err)
	}
	return errors.New(text.String())
}

// object reads an object, whose members are read by their names. Others are skipped. It
// gives io.EOF where nothing follows.
func (r *rowReader) object(members map[string]func() error) error {
	begin, err := r.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		return unreadable(err)
	case begin.Kind() != '{':
		return fmt.Errorf("the answer cannot be read: %s in the place of an object", begin.Kind())
	}
	for r.PeekKind() == '"' {
		name, err := r.ReadToken()
		if err != nil {
			return unreadable(err)
		}
		if read := members[name.String()]; read != nil {
			err = read()
		} else if err = r.SkipValue(); err != nil {
			err = unreadable(err)
		}
		if err != nil {
			return err
		}
	}
	if _, err = r.ReadToken(); err != nil {
		return unreadable(err)
	}
	return nil
}

// array reads an array, whose elements element reads.
func (r *rowReader) array(element func() error) error {
	begin, err := r.ReadToken()
	if err != nil {
		return unreadable(err)
	}
	if begin.Kind() != '[' {
		return fmt.Errorf("the answer cannot be read: %s in the place of an array", begin.Kind())
	}
	for {
		switch r.PeekKind() {
		case ']':
			_, err := r.ReadToken()
			return err
		case 0:
			_, err := r.ReadToken()
			return unreadable(err)
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// row reads [time, value, …].
func (r *rowReader) row() error {
	n, at := -1, int64(0)
	r.text = r.text[:0]
	err := r.array(func() error {
		value, err := r.ReadValue()
		if err != nil {
			return unreadable(err)
		}
		switch {
		case n < 0:
			if at, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return fmt.Errorf("the time of a row is %.40s", value)
			}
		case n < len(r.ends):
			r.text = append(r.text, value...)
			r.ends[n] = len(r.text)
		}
		n++
		return nil
	})
	if err != nil {
		return err
	}
	if n != len(r.ends) {
		return fmt.Errorf("a row has %d values, and the query selects %d", max(n, 0), len(r.ends))
	}
	begin := 0
	for i, end := range r.ends {
		r.values[i] = r.text[begin:end]
		begin = end
	}
	r.refused = r.take(at, r.values)
	return r.refused
}

func unreadable(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the answer cannot be read: %w", err)
}
