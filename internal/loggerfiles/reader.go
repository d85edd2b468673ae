package loggerfiles

import (
	"fmt"
	"time"
)

// Reader reads the records of a file in their order.
type Reader interface {
	// Table describes the records. Where a file has several headers, it is another one from
	// the first record on that follows a header.
	Table() *Table
	// Next is the next record, which is valid until the next call. A [*Refused] error
	// is of a line or frame that is no record: the next call goes on behind it. The
	// error is io.EOF at the end of the file. After any other error nothing follows.
	Next() (Record, error)
}

// Table is what a file says of its records.
type Table struct {
	// Format is toa5, tob1, tob3, hobo or csv.
	Format string
	// Station and Name are the file's names for station and table, "" without one. The
	// name of a HOBO file is the serial number of its logger.
	Station, Name string
	// Columns describe the values of a record, in their order.
	Columns []Column
}

// Column describes a value of each record.
type Column struct {
	Name string
	// Units and Process are in the file's words: degC, Avg. They are "" without one.
	Units, Process string
	// Type is an XML schema type: xsd:float. It is "" in files of text that declare none.
	Type string
}

// Record is one row of a table.
type Record struct {
	Position

	// Time has the offset from UTC that the file's clock had at that moment.
	Time time.Time
	// Number is the logger's count of its records, and Numbered whether the file has one.
	Number   int64
	Numbered bool
	// Values are texts, one for each column: numbers with a decimal point, NAN, INF and
	// -INF, true and false, or "" for no value.
	Values []string
}

// Position is a place in an uncompressed file.
type Position struct {
	// Line counts from 1. It is 0 in binary files.
	Line int64
	// Offset is in bytes, of the line, row or frame; in text of an 8-bit or 16-bit
	// encoding, in bytes of its UTF-8 form.
	Offset int64
}

// String is "line 7", or "byte 1024" in a binary file.
func (p Position) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("byte %d", p.Offset)
}

// Refused is the error of a line or frame that is no record.
type Refused struct {
	Position

	Reason string
	// Raw is the line or frame, or its beginning.
	Raw []byte
}

// Error implements error.
func (r *Refused) Error() string { return r.Position.String() + ": " + r.Reason }

// Refuse makes a [Refused] with a copy of what was refused.
func Refuse(at Position, raw []byte, format string, args ...any) *Refused {
	return &Refused{Position: at, Reason: fmt.Sprintf(format, args...), Raw: append([]byte(nil), raw...)}
}

// FormatError is of a file that cannot be read as what it is taken for.
type FormatError struct {
	Format string
	Reason string
}

// Error implements error.
func (e *FormatError) Error() string { return "not a readable " + e.Format + " file: " + e.Reason }

// BadFormat makes a [FormatError].
func BadFormat(format, reason string, args ...any) error {
	return &FormatError{Format: format, Reason: fmt.Sprintf(reason, args...)}
}
