// Package loggerfilestest makes files of data loggers for tests, of tables that are
// known. Its writers follow the vendors' manuals and share no code with the readers.
package loggerfilestest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

// Table is what a file is written from.
type Table struct {
	Station, Name string
	Interval      time.Duration
	Columns       []Column
	Rows          []Row
}

// Column is a column of a table. Type is a data type of TOB files; TOA5 and CSV write the
// same values as text.
type Column struct {
	Name, Units, Process, Type string
}

// Row is a record. Shown is what the logger's clock showed, as if in UTC. Values are
// float64, float32, int64, bool, string, time.Time or FP2.
type Row struct {
	Shown  time.Time
	Number uint32
	Values []any
}

// FP2 is a number of two bytes: magnitude, up to 7999, divided by ten as often as
// Decimals says.
type FP2 struct {
	Magnitude, Decimals int
	Negative            bool
}

// Float is the number.
func (f FP2) Float() float64 {
	value := float64(f.Magnitude) / math.Pow10(f.Decimals)
	if f.Negative {
		return -value
	}
	return value
}

// Types are the data types of columns, with the size of those that vary.
var Types = []string{
	"FP2", "IEEE4", "IEEE4L", "IEEE4B", "IEEE8", "IEEE8B", "LONG", "ULONG", "INT4", "UINT4", "SHORT", "USHORT", "INT2", "UINT2",
	"BYTE", "INT1", "BOOL", "BOOL2", "BOOL4", "BOOL8", "SecNano", "NSec", "ASCII(7)", "ASCII(16)",
}

// starts are times about which clocks and calendars differ.
var starts = []time.Time{
	time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(1999, 12, 31, 22, 10, 0, 0, time.UTC),
	time.Date(2024, 2, 28, 22, 40, 0, 0, time.UTC),
	time.Date(2026, 3, 8, 1, 0, 0, 0, time.UTC),
	time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2100, 2, 28, 23, 0, 0, 0, time.UTC),
}

// Random makes a table of 0 to 80 rows with columns of some of the types. Its records
// have gaps, and some are out of order.
func Random(r *rand.Rand, types ...string) Table {
	t := Table{
		Station: pick(r, "Blue Oak", "a,b", "st\"x", "öst"), Name: pick(r, "TenMin", "T_1", "Tab,le"),
		Interval: pick(r, 50*time.Millisecond, time.Second, time.Minute, 10*time.Minute, time.Hour, 24*time.Hour),
	}
	for i := range 1 + r.IntN(6) {
		t.Columns = append(t.Columns, Column{
			Name: fmt.Sprintf("Value_%d", i), Units: pick(r, "degC", "", "m/s", "W/m^2", "µmol, \"x\""), Process: pick(r, "Avg", "Smp", ""),
			Type: types[r.IntN(len(types))],
		})
	}
	at, number := pick(r, starts...), uint32(r.IntN(1000))
	if r.IntN(10) == 0 {
		number = math.MaxUint32 - 3 // it begins again at 0
	}
	for range r.IntN(81) {
		row := Row{Shown: at, Number: number}
		for _, column := range t.Columns {
			row.Values = append(row.Values, Value(r, column.Type))
		}
		t.Rows = append(t.Rows, row)
		at, number = at.Add(t.Interval), number+1
		if r.IntN(8) == 0 {
			at = at.Add(time.Duration(r.IntN(5)) * t.Interval)
		}
	}
	for i := range t.Rows {
		if r.IntN(20) == 0 {
			j := r.IntN(len(t.Rows))
			t.Rows[i], t.Rows[j] = t.Rows[j], t.Rows[i]
		}
	}
	return t
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// Value makes a value of a type, also an extreme one, or none.
func Value(r *rand.Rand, of string) any {
	switch of {
	case "FP2":
		if r.IntN(12) == 0 {
			return pick[any](r, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)))
		}
		return FP2{Magnitude: pick(r, r.IntN(8000), 0, 7999, 1), Decimals: r.IntN(4), Negative: r.IntN(2) == 0}
	case "IEEE4", "IEEE4L", "IEEE4B":
		return pick(r, math.Float32frombits(r.Uint32()), float32(r.NormFloat64()*50), math.MaxFloat32, math.SmallestNonzeroFloat32,
			float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0)
	case "IEEE8", "IEEE8L", "IEEE8B":
		return pick(r, math.Float64frombits(r.Uint64()), r.NormFloat64()*50, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(-1), 0)
	case "LONG", "INT4":
		return int64(pick(r, int32(r.Uint32()), math.MinInt32, math.MaxInt32, 0, -1))
	case "ULONG", "UINT4":
		return int64(pick(r, r.Uint32(), math.MaxUint32, 0))
	case "SHORT", "INT2":
		return int64(pick(r, int16(r.Uint32()), math.MinInt16, math.MaxInt16, -1))
	case "USHORT", "UINT2":
		return int64(pick(r, uint16(r.Uint32()), math.MaxUint16, 0))
	case "BYTE", "BOOL8":
		return int64(uint8(r.Uint32()))
	case "INT1":
		return int64(int8(r.Uint32()))
	case "BOOL", "BOOL2", "BOOL4":
		return r.IntN(2) == 0
	case "SecNano", "NSec":
		return starts[0].Add(time.Duration(r.Uint32())*time.Second + time.Duration(r.IntN(1e9)))
	}
	text := pick(r, "", "ok", "a\"b", "x,y", "é", " pad")
	return text
}

// Read reads a file to its end. What was refused is beside the records, whose values
// are copies.
func Read(t testing.TB, reader loggerfiles.Reader) (records []loggerfiles.Record, refused []*loggerfiles.Refused) {
	t.Helper()
	for {
		record, err := reader.Next()
		switch e := err.(type) { //nolint:errorlint // The interface promises this very type.
		case nil:
			record.Values = slices.Clone(record.Values)
			records = append(records, record)
		case *loggerfiles.Refused:
			refused = append(refused, e)
		default:
			if !errors.Is(err, io.EOF) {
				t.Fatalf("read a file: %v", err)
			}
			return records, refused
		}
	}
}

// CheckRead reads a file of a size to its end, or to an error of its format, and fails the test if
// a record is not whole, or places do not go on.
func CheckRead(t testing.TB, reader loggerfiles.Reader, size int) {
	t.Helper()
	last := int64(-1)
	for {
		record, err := reader.Next()
		var refused *loggerfiles.Refused
		var format *loggerfiles.FormatError
		switch {
		case err == nil:
			if len(record.Values) != len(reader.Table().Columns) || record.Offset <= last || record.Offset >= int64(size) {
				t.Fatalf("the record at %d, after %d, of %d bytes has %d values of %d",
					record.Offset, last, size, len(record.Values), len(reader.Table().Columns))
			}
			last = record.Offset
		case errors.As(err, &refused):
		case errors.As(err, &format), errors.Is(err, io.EOF):
			return
		default:
			t.Fatal(err)
		}
	}
}

// Require fails the test unless records are rows of the table, from the first on. A zone is that of
// the clock.
func (t Table) Require(tb testing.TB, records []loggerfiles.Record, numbered bool, zone *time.Location) {
	tb.Helper()
	if len(records) > len(t.Rows) {
		tb.Fatalf("%d records of %d rows", len(records), len(t.Rows))
	}
	for i, record := range records {
		row := t.Rows[i]
		shown := time.Date(row.Shown.Year(), row.Shown.Month(), row.Shown.Day(), row.Shown.Hour(), row.Shown.Minute(), row.Shown.Second(), row.Shown.Nanosecond(), zone)
		if !record.Time.Equal(shown) {
			tb.Fatalf("record %d is of %s, and the row of %s", i, record.Time, shown)
		}
		if numbered && (!record.Numbered || record.Number != int64(row.Number)) {
			tb.Fatalf("record %d has the number %d, and the row %d", i, record.Number, row.Number)
		}
		if len(record.Values) != len(row.Values) {
			tb.Fatalf("record %d has %d values, and the row %d", i, len(record.Values), len(row.Values))
		}
		for j, want := range row.Values {
			if !means(record.Values[j], want) {
				tb.Fatalf("record %d, column %s (%s): %q, and the row has %v", i, t.Columns[j].Name, t.Columns[j].Type, record.Values[j], want)
			}
		}
	}
}

// means reports whether a text means a value.
func means(text string, want any) bool {
	switch value := want.(type) {
	case FP2:
		got, err := strconv.ParseFloat(text, 64)
		return err == nil && math.Abs(got-value.Float()) < 1e-9
	case float32:
		return meansFloat(text, float64(value), 32)
	case float64:
		return meansFloat(text, value, 64)
	case int64:
		return text == strconv.FormatInt(value, 10)
	case bool:
		return text == strconv.FormatBool(value)
	case time.Time:
		got, err := time.Parse("2006-01-02T15:04:05", text)
		return err == nil && got.Equal(value)
	case string:
		return strings.TrimSpace(text) == strings.TrimSpace(value)
	}
	return false
}

func meansFloat(text string, want float64, bits int) bool {
	switch {
	case math.IsNaN(want):
		return text == "NAN"
	case math.IsInf(want, 1):
		return text == "INF"
	case math.IsInf(want, -1):
		return text == "-INF"
	}
	got, err := strconv.ParseFloat(text, bits)
	return err == nil && got == want
}

// plain is a value as text: its decimals have a point.
func plain(value any) string {
	switch value := value.(type) {
	case FP2:
		return strconv.FormatFloat(value.Float(), 'f', value.Decimals, 64)
	case float32:
		return plainFloat(float64(value), 32)
	case float64:
		return plainFloat(value, 64)
	case time.Time:
		return value.Format("2006-01-02T15:04:05.999999999")
	}
	return fmt.Sprint(value)
}

func plainFloat(value float64, bits int) string {
	switch {
	case math.IsNaN(value):
		return "NAN"
	case math.IsInf(value, 0):
		return strings.TrimSuffix(strings.ToUpper(strings.TrimPrefix(fmt.Sprint(value), "+")), "INITY")
	}
	return strconv.FormatFloat(value, 'e', -1, bits)
}
