package page

import (
	"bufio"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const (
	// maxLines is how many lines of a log are shown: the latest.
	maxLines = 200
	// logTimeout is how long a view waits for the log: it shows the rest without it.
	logTimeout = 3 * time.Second
)

// logQuery is which lines of a log are shown, as the address of the page says it.
type logQuery struct{ Level, Search string }

func readLogQuery(values url.Values) logQuery {
	return logQuery{Level: strings.ToUpper(values.Get("level")), Search: strings.TrimSpace(values.Get("search"))}
}

// Filters reports whether lines are left out.
func (q logQuery) Filters() bool { return q != logQuery{} }

// logView is what the handler of a run logged.
type logView struct {
	logQuery
	Lines []*jobsv1.LogLine
	// Earlier is how many lines are left out.
	Earlier int
	// Note says why there is no log to show, or none of the handler.
	Note string
	// Path is the address of the run, and File that of its log.
	Path, File string
	// Follow says that lines come.
	Follow bool
}

// log reads the log of a run.
func (p *Page) log(ctx context.Context, name string, query logQuery) logView {
	view := logView{logQuery: query, Path: runPath(name), File: runPath(name) + "/log"}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	answer, err := p.API.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: name, Level: query.Level, Search: query.Search})
	if err != nil {
		view.Note = "The log cannot be read: " + sentence(err) + "."
		return view
	}
	lines := answer.GetLines()
	view.Earlier, view.Note = max(0, len(lines)-maxLines), answer.GetNote()
	view.Lines = lines[view.Earlier:]
	return view
}

// logFormats are those of a log as a file, with their types and ends.
var logFormats = map[string]struct {
	content, end string
	line         func(*jobsv1.LogLine) ([]byte, error)
}{
	"text": {"text/plain; charset=utf-8", ".log", func(line *jobsv1.LogLine) ([]byte, error) {
		return []byte(plantext.LogLine(line, time.UTC)), nil
	}},
	"json": {"application/x-ndjson", ".jsonl", plantext.LogJSON},
}

// logFile sends all kept lines of the log of a run, or those that the address asks for.
func (p *Page) logFile(w http.ResponseWriter, r *http.Request) {
	name, values := r.PathValue("name"), r.URL.Query()
	failed := func(err error) { p.show(func(*http.Request) (*document, error) { return nil, err }).ServeHTTP(w, r) }
	format, known := logFormats[values.Get("format")]
	if !known {
		failed(connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%.20q is not a format of a log: text or json", values.Get("format"))))
		return
	}
	query := readLogQuery(values)
	answer, err := p.API.Runs.ListRunLogs(r.Context(), &jobsv1.ListRunLogsRequest{Name: name, Level: query.Level, Search: query.Search})
	if err != nil {
		failed(err)
		return
	}
	w.Header().Set("Content-Type", format.content)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": logFileName(name) + format.end}))
	out := bufio.NewWriter(w)
	for _, line := range answer.GetLines() {
		text, err := format.line(line)
		if err != nil {
			p.Logger.ErrorContext(r.Context(), "a line of a log cannot be written", "run", name, "error", err)
			return
		}
		_, _ = out.Write(append(text, '\n')) // Flush tells.
	}
	if err := out.Flush(); err != nil {
		p.Logger.DebugContext(r.Context(), "a log was not sent to its end", "run", name, "error", err)
	}
}

// logFileName is the name of a run as that of a file.
func logFileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.TrimPrefix(name, "job/"))
}
