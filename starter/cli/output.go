package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api/plantext"
)

// format is the form of the data on standard output.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
)

// note writes a line to standard error.
func (i *invocation) note(format string, args ...any) {
	_, _ = fmt.Fprintf(i.Stderr, format+"\n", args...) // There is no other place for its error.
}

// noteEmpty writes a note if a list is empty.
func (i *invocation) noteEmpty(one string, entries int) (empty bool) {
	if entries == 0 {
		i.note("No %s found.", one)
	}
	return entries == 0
}

// print writes a line to standard output.
func (i *invocation) print(format string, args ...any) error {
	_, err := fmt.Fprintf(i.Stdout, format+"\n", args...)
	return err
}

// emit writes a value as JSON, or calls write for people. Messages of the Job API have
// the API's JSON.
func (i *invocation) emit(value any, write func(w io.Writer) error) error {
	if i.format == formatTable {
		return write(i.Stdout)
	}
	if message, ok := value.(proto.Message); ok {
		return writeMessage(i.Stdout, message)
	}
	encoder := json.NewEncoder(i.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// table writes rows in columns. An empty cell is shown as "-".
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells []string) {
		// A tabwriter reports its errors when it is flushed.
		_, _ = fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	line(t.header)
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for n, cell := range row {
			if cells[n] = clean(cell); cells[n] == "" {
				cells[n] = "-"
			}
		}
		line(cells)
	}
	return columns.Flush()
}

// sheet writes names and values under each other. Rows without a value are
// left out.
type sheet struct {
	names, values []string
}

func (s *sheet) add(name, format string, args ...any) {
	if value := fmt.Sprintf(format, args...); value != "" {
		s.names, s.values = append(s.names, name), append(s.values, value)
	}
}

func (s *sheet) write(w io.Writer) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for n, name := range s.names {
		for k, line := range strings.Split(s.values[n], "\n") {
			if k > 0 {
				name = ""
			}
			_, _ = fmt.Fprintf(columns, "%s\t%s\n", name, clean(line))
		}
	}
	return columns.Flush()
}

// section writes a headline and a table, if it has rows.
func (t *table) section(w io.Writer, headline string) error {
	if len(t.rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", headline); err != nil {
		return err
	}
	return t.write(w)
}

// clean replaces control characters, which would break a line or control a terminal:
// error messages and job results come from outside.
func clean(text string) string { return plantext.Clean(text) }

// color is an ANSI escape sequence.
type color string

const (
	red     color = "\x1b[31m"
	green   color = "\x1b[32m"
	yellow  color = "\x1b[33m"
	magenta color = "\x1b[35m"
	faint   color = "\x1b[2m"
	reset   color = "\x1b[0m"
)

// paint colors a text that goes to standard output, if that is a terminal that
// has colors.
func (i *invocation) paint(c color, text string) string {
	if i.noColor || i.Getenv("NO_COLOR") != "" || i.Getenv("TERM") == "dumb" || !i.IsTerminal(i.Stdout) {
		return text
	}
	return string(c) + text + string(reset)
}
