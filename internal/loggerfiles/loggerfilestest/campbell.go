package loggerfilestest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// quote writes cells as Campbell's headers have them: all in quotes.
func quote(cells ...string) string {
	for i, cell := range cells {
		cells[i] = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
	}
	return strings.Join(cells, ",") + "\r\n"
}

func (t Table) cells(of func(Column) string, before ...string) []string {
	cells := before
	for _, column := range t.Columns {
		cells = append(cells, of(column))
	}
	return cells
}

func name(c Column) string     { return c.Name }
func units(c Column) string    { return c.Units }
func process(c Column) string  { return c.Process }
func dataType(c Column) string { return c.Type }

// TOA5 writes the table as a TOA5 file.
func (t Table) TOA5() []byte {
	var b bytes.Buffer
	b.WriteString(quote("TOA5", t.Station, "CR1000", "1031", "CR1000.Std.00.60", "CPU:Test.CR1", "4062", t.Name))
	b.WriteString(quote(t.cells(name, "TIMESTAMP", "RECORD")...))
	b.WriteString(quote(t.cells(units, "TS", "RN")...))
	b.WriteString(quote(t.cells(process, "", "")...))
	for _, row := range t.Rows {
		fmt.Fprintf(&b, `"%s",%d`, row.Shown.Format("2006-01-02 15:04:05.999999999"), row.Number)
		for _, value := range row.Values {
			text := plain(value)
			if _, err := strconv.ParseFloat(text, 64); err != nil || text == "NAN" {
				text = strings.TrimSpace(quote(text))
			}
			b.WriteString("," + text)
		}
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

// stored is a value as bytes of a data type.
func stored(kind string, value any) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	switch kind {
	case "IEEE4B", "IEEE8B", "INT2", "UINT2", "INT4", "UINT4", "NSec":
		order = binary.BigEndian
	}
	switch value := value.(type) {
	case FP2:
		word := uint16(value.Magnitude) | uint16(value.Decimals)<<13
		if value.Negative {
			word |= 0x8000
		}
		return binary.BigEndian.AppendUint16(nil, word)
	case float32:
		if kind != "FP2" {
			return order.AppendUint32(nil, math.Float32bits(value))
		}
		switch {
		case math.IsInf(float64(value), 1):
			return []byte{0x1F, 0xFF}
		case math.IsInf(float64(value), -1):
			return []byte{0x9F, 0xFF}
		}
		return []byte{0x9F, 0xFE}
	case float64:
		return order.AppendUint64(nil, math.Float64bits(value))
	case bool:
		size := map[string]int{"BOOL": 1, "BOOL2": 2, "BOOL4": 4}[kind]
		if value {
			return bytes.Repeat([]byte{0xFF}, size)
		}
		return make([]byte, size)
	case time.Time:
		since := value.Sub(starts[0])
		return order.AppendUint32(order.AppendUint32(nil, uint32(since/time.Second)), uint32(since%time.Second))
	case string:
		var size int
		_, _ = fmt.Sscanf(kind, "ASCII(%d)", &size)
		b := make([]byte, 0, size)
		for _, char := range value {
			b = append(b, byte(char)) // Latin-1
		}
		return append(b, make([]byte, size-len(b))...)
	case int64:
		switch kind {
		case "BYTE", "INT1", "BOOL8":
			return []byte{byte(value)}
		case "SHORT", "USHORT", "INT2", "UINT2":
			return order.AppendUint16(nil, uint16(value))
		}
		return order.AppendUint32(nil, uint32(value))
	}
	return nil
}

func (t Table) row(values []any) []byte {
	var b []byte
	for i, value := range values {
		b = append(b, stored(t.Columns[i].Type, value)...)
	}
	return b
}

// latin1 is a text of a binary file's header.
func latin1(text string) string {
	var b []byte
	for _, char := range text {
		b = append(b, byte(char))
	}
	return string(b)
}

// TOB1 writes the table as a TOB1 file.
func (t Table) TOB1() []byte {
	var b bytes.Buffer
	b.WriteString(latin1(quote("TOB1", t.Station, "CR9000", "1000", "1.00", "CPU:BIG.DLD", "25871", t.Name) +
		quote(t.cells(name, "SECONDS", "NANOSECONDS", "RECORD")...) +
		quote(t.cells(units, "SECONDS", "NANOSECONDS", "RN")...) +
		quote(t.cells(process, "", "", "")...) +
		quote(t.cells(dataType, "ULONG", "ULONG", "ULONG")...)))
	for _, row := range t.Rows {
		b.Write(stored("SecNano", row.Shown))
		b.Write(stored("ULONG", int64(row.Number)))
		b.Write(t.row(row.Values))
	}
	return b.Bytes()
}

// TOB3Options are what a TOB3 file may be written with.
type TOB3Options struct {
	// Frame is the size of a frame in bytes; 0 for one of ten records and some bytes.
	Frame int
	// Stamp is the validation stamp.
	Stamp uint16
	// Complement says which frames have the complement of the stamp, by their number.
	Complement func(frame int) bool
}

// TOB3 writes the table as a TOB3 file. Records that do not follow each other by interval
// and number are in minor frames. A table whose record has fewer than 16 bytes gets no
// room for an empty minor frame: use [Table.Widen].
func (t Table) TOB3(o TOB3Options) []byte {
	size := 0
	for _, column := range t.Columns {
		size += len(stored(column.Type, Value(rand.New(rand.NewPCG(1, 1)), column.Type)))
	}
	if o.Frame == 0 {
		o.Frame = 16 + 10*size + min(size-1, 5)
	}
	perFrame := (o.Frame - 16) / size
	interval := fmt.Sprintf("%d MSEC", t.Interval/time.Millisecond)
	if t.Interval%time.Minute == 0 {
		interval = fmt.Sprintf("%d MIN", t.Interval/time.Minute)
	}
	var b bytes.Buffer
	b.WriteString(latin1(quote("TOB3", t.Station, "CR1000", "1031", "CR1000.Std.00.60", "CPU:Test.CR1", "4062", "2026-03-04 12:00:00") +
		quote(t.Name, interval, strconv.Itoa(o.Frame), "1000", strconv.Itoa(int(o.Stamp)), "Sec100Usec", "0", "0", "0") +
		quote(t.cells(name)...) + quote(t.cells(units)...) + quote(t.cells(process)...) + quote(t.cells(dataType)...)))
	frames := 0
	footer := func(bits uint32) []byte {
		stamp := o.Stamp
		if o.Complement != nil && o.Complement(frames) {
			stamp = ^stamp
		}
		return binary.LittleEndian.AppendUint32(nil, uint32(stamp)<<16|bits)
	}
	header := func(row Row) []byte {
		since := row.Shown.Sub(starts[0])
		h := binary.LittleEndian.AppendUint32(nil, uint32(since/time.Second))
		h = binary.LittleEndian.AppendUint32(h, uint32(since%time.Second/(100*time.Microsecond)))
		return binary.LittleEndian.AppendUint32(h, row.Number)
	}
	var major []byte // minor frames so far
	end := func() {
		if rest := o.Frame - len(major); len(major) > 0 {
			if rest > 0 {
				empty := append(make([]byte, rest-4), footer(uint32(rest)|0x8000|0x4000)...)
				major = append(major, empty...)
			}
			b.Write(major)
			major = nil
			frames++
		}
	}
	for rest := t.Rows; len(rest) > 0; {
		n := 1
		for n < len(rest) && n < perFrame && rest[n].Shown.Equal(rest[n-1].Shown.Add(t.Interval)) && rest[n].Number == rest[n-1].Number+1 {
			n++
		}
		body := header(rest[0])
		for _, row := range rest[:n] {
			body = append(body, t.row(row.Values)...)
		}
		rest = rest[n:]
		whole := len(body) + 4
		if n == perFrame {
			end()
			b.Write(body)
			b.Write(make([]byte, o.Frame-whole))
			b.Write(footer(0))
			frames++
		} else {
			if left := o.Frame - len(major) - whole; left != 0 && left < 16 {
				end()
			}
			major = append(major, append(body, footer(uint32(whole)|0x8000)...)...)
			if len(major) == o.Frame {
				end()
			}
		}
	}
	end()
	return b.Bytes()
}

// Widen adds a column of 16 bytes.
func (t Table) Widen() Table {
	t.Columns = append(t.Columns, Column{Name: "Wide", Type: "ASCII(16)"})
	for i := range t.Rows {
		t.Rows[i].Values = append(t.Rows[i].Values, "wide")
	}
	return t
}
