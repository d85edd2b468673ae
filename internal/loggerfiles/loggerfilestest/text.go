package loggerfilestest

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// HOBOOptions are what HOBOware asks for an export.
type HOBOOptions struct {
	Delimiter string // ",", ";" or tab
	Title     bool
	Offset    string // from GMT: -07:00
	TwoTimes  bool   // date and time in columns of their own
	Date      string // layout of package time: 01/02/06
	Clock     string // 03:04:05 PM
	Events    bool   // a column Host Connected, and a line that is one
}

// HOBO writes the table as an export of HOBOware. The logger's serial number is the
// table's name.
func (t Table) HOBO(o HOBOOptions) []byte {
	var b bytes.Buffer
	if o.Title {
		b.WriteString("\ufeff\"Plot Title: " + strings.ReplaceAll(t.Station, `"`, "'") + "\"\r\n")
	}
	headings := []string{`"#"`}
	if o.TwoTimes {
		headings = append(headings, `"Date"`, `"Time, GMT`+o.Offset+`"`)
	} else {
		headings = append(headings, `"Date Time, GMT`+o.Offset+`"`)
	}
	for i, c := range t.Columns {
		headings = append(headings, fmt.Sprintf(`"%s, %s (LGR S/N: %s, SEN S/N: %s-%d, LBL: x)"`, c.Name, c.Units, t.Name, t.Name, i))
	}
	if o.Events {
		headings = append(headings, fmt.Sprintf(`"Host Connected (LGR S/N: %s)"`, t.Name))
	}
	b.WriteString(strings.Join(headings, o.Delimiter) + "\r\n")
	for i, row := range t.Rows {
		at := row.Shown.Format(o.Date) + " " + row.Shown.Format(o.Clock)
		if o.TwoTimes {
			at = row.Shown.Format(o.Date) + o.Delimiter + row.Shown.Format(o.Clock)
		}
		if o.Events && i%7 == 3 {
			fmt.Fprintf(&b, "%d%s%s%s%sLogged\r\n", i, o.Delimiter, at, strings.Repeat(o.Delimiter, len(t.Columns)), o.Delimiter)
		}
		fmt.Fprintf(&b, "%d%s%s", i+1, o.Delimiter, at)
		for _, value := range row.Values {
			text := plain(value)
			if o.Delimiter == ";" {
				text = strings.ReplaceAll(text, ".", ",")
			}
			b.WriteString(o.Delimiter + text)
		}
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

// CSVOptions are how a plain CSV file is written.
type CSVOptions struct {
	Delimiter    string
	Above        []string // lines before the headings
	Headings     bool
	Time         func(time.Time) string // cells of the time, with the delimiter between them
	TimeHeadings []string
	Missing      string // for NaN and infinities
	DecimalComma bool
}

// CSV writes the table as plain CSV.
func (t Table) CSV(o CSVOptions) []byte {
	var b bytes.Buffer
	for _, line := range o.Above {
		b.WriteString(line + "\n")
	}
	cell := func(text string) string {
		if strings.ContainsAny(text, o.Delimiter+`"`) {
			return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		}
		return text
	}
	if o.Headings {
		headings := append([]string(nil), o.TimeHeadings...)
		for _, c := range t.Columns {
			headings = append(headings, cell(c.Name))
		}
		b.WriteString(strings.Join(headings, o.Delimiter) + "\n")
	}
	for _, row := range t.Rows {
		b.WriteString(o.Time(row.Shown))
		for _, value := range row.Values {
			text := plain(value)
			switch {
			case text == "NAN" || text == "INF" || text == "-INF":
				text = o.Missing
			case o.DecimalComma:
				text = strings.ReplaceAll(text, ".", ",")
			}
			b.WriteString(o.Delimiter + cell(text))
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}

// Missing is the table without the numbers that are none, which a plain CSV file leaves
// out.
func (t Table) Missing() Table {
	rows := make([]Row, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = Row{Shown: row.Shown, Number: row.Number}
		for _, value := range row.Values {
			if text := plain(value); text == "NAN" || text == "INF" || text == "-INF" {
				value = ""
			}
			rows[i].Values = append(rows[i].Values, value)
		}
	}
	t.Rows = rows
	return t
}
