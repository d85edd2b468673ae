package plantext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// LogField is what a line of a log says besides its message.
type LogField struct {
	Name, Value string
	// Long says that it has several lines, as a stack has.
	Long bool
}

// hiddenFields are the same in all lines of a log.
var hiddenFields = []string{"trace_id", "span_id", "worker"}

// LogFields are what a line says besides its message, by their names.
func LogFields(line *jobsv1.LogLine) []LogField {
	all := line.GetAttributes().GetFields()
	var fields []LogField
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(hiddenFields, name) {
			continue
		}
		if text := strings.TrimSpace(all[name].GetStringValue()); strings.Contains(text, "\n") {
			fields = append(fields, LogField{name, text, true})
		} else {
			fields = append(fields, LogField{name, plainValue(all[name]), false})
		}
	}
	return fields
}

// plainValue is a value of JSON as people read it: a text without quotes where it needs none.
func plainValue(value *structpb.Value) string {
	if text, ok := value.GetKind().(*structpb.Value_StringValue); ok && text.StringValue != "" && !strings.ContainsAny(text.StringValue, " =\"") {
		return text.StringValue
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // People read it.
	if err := encoder.Encode(value.AsInterface()); err != nil {
		return value.String()
	}
	return strings.TrimSpace(text.String())
}

// LogSays is what a line of a log says, as people read it: "text key=value". A field of several
// lines comes below.
func LogSays(line *jobsv1.LogLine) string {
	text, below := Clean(line.GetMessage()), ""
	for _, field := range LogFields(line) {
		if !field.Long {
			text += " " + Clean(field.Name) + "=" + Clean(field.Value)
			continue
		}
		below += "\n  " + Clean(field.Name) + ":"
		for part := range strings.SplitSeq(field.Value, "\n") {
			below += "\n    " + Clean(strings.ReplaceAll(part, "\t", "  "))
		}
	}
	return text + below
}

// LogLine is a line of a log, without its end: "2026-05-01 12:00:05.120 INFO  attempt 1: text
// key=value".
func LogLine(line *jobsv1.LogLine, in *time.Location) string {
	text := fmt.Sprintf("%s %-5s", line.GetTime().AsTime().In(in).Format(time.DateTime+".000"), Clean(line.GetLevel()))
	switch {
	case line.GetIteration() != 0:
		text += fmt.Sprintf(" iteration %d:", line.GetIteration())
	case line.GetAttempt() != 0:
		text += fmt.Sprintf(" attempt %d:", line.GetAttempt())
	}
	return text + " " + LogSays(line)
}

// LogJSON is a line of a log as JSON, on one line and without its end.
func LogJSON(line *jobsv1.LogLine) ([]byte, error) {
	text, err := protojson.Marshal(line)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer // The white space of protojson changes from build to build.
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}
