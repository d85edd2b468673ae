package page

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const (
	// maxLines is how many lines of a log are shown: the latest.
	maxLines = 200
	// logTimeout is how long a view waits for the log: it shows the rest without it.
	logTimeout = 3 * time.Second
)

// logView is what the handler of a run logged.
type logView struct {
	Lines []logLine
	// Earlier is how many lines are left out.
	Earlier int
	// Note says why there is no log to show.
	Note string
}

// logLine is a line of a log.
type logLine struct {
	*jobsv1.LogLine
	// Fields are the attributes, in the order of their names.
	Fields []field
}

// log reads the log of a run.
func (p *Page) log(ctx context.Context, name string) logView {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	answer, err := p.API.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: name})
	if err != nil {
		return logView{Note: "The log cannot be read: " + sentence(err) + "."}
	}
	lines := answer.GetLines()
	view := logView{Earlier: max(0, len(lines)-maxLines)}
	for _, line := range lines[view.Earlier:] {
		view.Lines = append(view.Lines, logLine{line, attributes(line.GetAttributes())})
	}
	return view
}

// hiddenAttributes are the same in all lines of a log.
var hiddenAttributes = []string{"trace_id", "span_id", "worker"}

// attributes are what else a line says.
func attributes(all *structpb.Struct) []field {
	var shown []field
	for _, name := range slices.Sorted(maps.Keys(all.GetFields())) {
		if !slices.Contains(hiddenAttributes, name) {
			shown = append(shown, field{name, attribute(all.GetFields()[name])})
		}
	}
	return shown
}

// attribute is a text without spaces, or of several lines, as it is, and anything else as
// JSON.
func attribute(value *structpb.Value) string {
	if text, ok := value.GetKind().(*structpb.Value_StringValue); ok && (strings.Contains(text.StringValue, "\n") || !strings.Contains(text.StringValue, " ")) {
		return text.StringValue
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // Templates do.
	if err := encoder.Encode(value.AsInterface()); err != nil {
		return value.String()
	}
	return strings.TrimSpace(text.String())
}
