package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api/plantext"
)

// format is the form of the data on standard output.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
)

// printer writes what people read. Texts come from outside, too: what would steer the terminal
// is replaced here, whoever writes.
type printer struct{ io.Writer }

// Write implements io.Writer.
func (p printer) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.Writer, plantext.CleanLines(string(text), string(red), string(green), string(yellow), string(magenta), string(faint), string(reset)))
	return len(text), err
}

// out and errs print to standard output and standard error.
func (i *invocation) out() io.Writer  { return printer{i.Stdout} }
func (i *invocation) errs() io.Writer { return printer{i.Stderr} }

// note writes a line to standard error.
func (i *invocation) note(format string, args ...any) {
	_, _ = fmt.Fprintf(i.errs(), format+"\n", args...) // There is no other place for its error.
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
	_, err := fmt.Fprintf(i.out(), format+"\n", args...)
	return err
}

// emit writes a value as JSON, or calls write for people. Messages of the Job API have
// the API's JSON.
func (i *invocation) emit(value any, write func(w io.Writer) error) error {
	if i.format == formatTable {
		return write(i.screen())
	}
	if message, ok := value.(proto.Message); ok {
		return writeMessage(i.Stdout, message)
	}
	encoder := json.NewEncoder(i.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// plural is a number with its noun.
var plural = plantext.Counted

// clean makes a text from outside one line. What steers a terminal is replaced by the printer.
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
