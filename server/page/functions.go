package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// functions are those of the templates.
var functions = template.FuncMap{
	"version": func() string { return version },
	"when":    when,
	"took":    func(d *durationpb.Duration) string { return took(d) },
	"lasted":  lasted,
	"word":    word,
	"letters": verbs.Outcomes,
	"segment": url.PathEscape,
	"join":    strings.Join,
	"upper":   strings.ToUpper,
	"plural":  plantext.Counted,
	"done":    doneText,
	"json": func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	},
	"list":      func(values ...string) []string { return values },
	"pairs":     pairs,
	"differing": differing,
	"firstTime": func(times ...*timestamppb.Timestamp) *timestamppb.Timestamp {
		for _, t := range times {
			if t != nil {
				return t
			}
		}
		return nil
	},
	"moreThan":    func(all int32, shown []string) int { return int(all) - len(shown) },
	"morning":     func() string { return morning(time.Now().UTC()).Format(time.RFC3339) },
	"statusClass": statusClass,
	"logFields":   plantext.LogFields,
	"utc":         func(t time.Time) template.HTML { return clock(timestamppb.New(t)) },
	"ended":       ended,
	"slashes":     slashes,
	"errorClass":  errorClass,
	"clock":       clock,
	"stamp":       stamp,
	"stampIn":     stampIn,
	"timed":       timed,
}

// ended is a text that more sentences can follow.
func ended(text string) string {
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

// slashes is a name that browsers break after its slashes alone.
func slashes(name string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(name), "/", "/<wbr>")) //nolint:gosec // It is escaped.
}

// morning is the next 08:00 after a time, in its zone: until then people sleep.
func morning(now time.Time) time.Time {
	at := time.Date(now.Year(), now.Month(), now.Day(), 8, 0, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// errorClass is what is known of a class of errors, nil if it is none of the list.
func errorClass(name string) *errclass.Class {
	class, listed := errclass.Find(name)
	if !listed {
		return nil
	}
	return &class
}

// pairs are values that stand beside each other.
func pairs(values []string) []field {
	var fields []field
	for i := 0; i+1 < len(values); i += 2 {
		fields = append(fields, field{values[i], values[i+1]})
	}
	return fields
}

// short is a time ahead for a place where there are a thousand of them, and brief any time.
func short(t *timestamppb.Timestamp) template.HTML {
	return timeElement(t, "", wait(time.Until(t.AsTime())))
}

func brief(t *timestamppb.Timestamp) template.HTML {
	return timeElement(t, "", wording.Away(time.Until(t.AsTime())))
}

// when is how far a time is from now, with the time itself as its title. The script keeps it
// up to date.
func when(t *timestamppb.Timestamp) template.HTML {
	if t == nil {
		return `<span class="none">–</span>`
	}
	return timeElement(t, ` title="`+wording.Stamp(t.AsTime())+`"`, wording.Away(time.Until(t.AsTime())))
}

// stamp is a time to the second. The script writes it in the zone of the browser, if people
// choose that.
func stamp(t *timestamppb.Timestamp) template.HTML {
	if t == nil {
		return ""
	}
	return timeElement(t, ` class="stamp"`, wording.Stamp(t.AsTime()))
}

// clock is the time of a line of a log.
func clock(t *timestamppb.Timestamp) template.HTML {
	return timeElement(t, ` class="stamp ms"`, t.AsTime().UTC().Format("2006-01-02 15:04:05.000"))
}

func timeElement(t *timestamppb.Timestamp, attributes, text string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s"%s>%s</time>`, //nolint:gosec // There are figures and units in it alone.
		t.AsTime().UTC().Format("2006-01-02T15:04:05.999Z"), attributes, text))
}

// stampIn is a time in the zone of a job, such as that of its station. It is UTC if the zone
// is not known here.
func stampIn(t *timestamppb.Timestamp, zone string) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return wording.Stamp(t.AsTime())
	}
	return t.AsTime().In(location).Format("2006-01-02 15:04:05 ") + zone
}

// stamps are the times in texts of the API.
var stamps = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\b`)

// timed is a text whose times the script can write in the zone of the browser.
func timed(text string) template.HTML {
	return template.HTML(stamps.ReplaceAllStringFunc(template.HTMLEscapeString(text), func(found string) string { //nolint:gosec // It is escaped.
		at, err := time.Parse("2006-01-02 15:04:05 MST", found)
		if err != nil {
			return found
		}
		return string(stamp(timestamppb.New(at)))
	}))
}

// wait says how long something takes that lies ahead: what should have been is now.
func wait(d time.Duration) string { return wording.Away(max(d, 0)) }

// took is a duration as it was measured.
func took(d *durationpb.Duration) string {
	if d == nil {
		return "–"
	}
	return wording.Span(d.AsDuration())
}

// lasted is how long something took, or has taken until now.
func lasted(from, to *timestamppb.Timestamp) string {
	if from == nil {
		return "–"
	}
	if to == nil {
		return wording.Span(time.Since(from.AsTime()))
	}
	return wording.Span(to.AsTime().Sub(from.AsTime()))
}

// word is the name of an enum's value for people.
func word(value fmt.Stringer) string {
	name := value.String()
	for _, prefix := range []string{
		"JOB_STATUS_", "RUN_STATUS_", "QUEUE_STATUS_", "LOAD_STATUS_", "WORKER_STATUS_", "MISSED_REASON_", "ALERT_RULE_", "ALERT_SEVERITY_",
		"FAILURE_POLICY_", "DRIFT_KIND_", "JOB_ACTION_", "INTEGRATION_STATE_",
	} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return strings.ToLower(strings.ReplaceAll(rest, "_", " "))
		}
	}
	return strings.ToLower(name)
}

// doneText is the progress of a run whose total is not known. A message that starts with a
// number has its own counts.
func doneText(p *jobsv1.RunProgress) string {
	if text := p.GetMessage(); text != "" && text[0] >= '0' && text[0] <= '9' {
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%d done %s", p.GetDone(), p.GetMessage()))
}
