package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job/errclass"
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
	"plural":  plantext.Counted,
	"done":    doneText,
	"json": func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	},
	"list":      func(values ...string) []string { return values },
	"pairs":     pairs,
	"short":     short,
	"differing": differing,
	"firstTime": func(times ...*timestamppb.Timestamp) *timestamppb.Timestamp {
		for _, t := range times {
			if t != nil {
				return t
			}
		}
		return nil
	},
	"statusClass": statusClass,
	"errorClass":  errorClass,
	"clock": func(t *timestamppb.Timestamp) string {
		return t.AsTime().UTC().Format("2006-01-02 15:04:05.000")
	},
	"stamp": func(t *timestamppb.Timestamp) string {
		if t == nil {
			return ""
		}
		return t.AsTime().UTC().Format("2006-01-02 15:04:05 UTC")
	},
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

// short is a time for a place where there are a thousand of them.
func short(t *timestamppb.Timestamp) template.HTML {
	at := t.AsTime().UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, //nolint:gosec // There are figures and units in it alone.
		at.Format(time.RFC3339), wait(time.Until(at))))
}

// when is a time for people, and for the script that keeps it up to date.
func when(t *timestamppb.Timestamp) template.HTML {
	if t == nil {
		return `<span class="none">–</span>`
	}
	at := t.AsTime().UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, //nolint:gosec // There are figures and units in it alone.
		at.Format(time.RFC3339), at.Format("2006-01-02 15:04:05 UTC"), relative(time.Until(at))))
}

// soon is how near a time is that counts as now: clocks differ, and answers take a while.
const soon = time.Second

// relative says how far a time is away.
func relative(away time.Duration) string {
	switch {
	case away >= soon:
		return "in " + span(away)
	case away > -soon:
		return "now"
	}
	return span(-away) + " ago"
}

// wait says how long something takes that lies ahead: what should have been is now.
func wait(d time.Duration) string {
	if d < soon {
		return "now"
	}
	return "in " + span(d)
}

// span is a duration in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	}
	return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
}

// took is a duration as it was measured.
func took(d *durationpb.Duration) string {
	if d == nil {
		return "–"
	}
	return exact(d.AsDuration())
}

func exact(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// lasted is how long something took, or has taken until now.
func lasted(from, to *timestamppb.Timestamp) string {
	if from == nil {
		return "–"
	}
	if to == nil {
		return exact(time.Since(from.AsTime()))
	}
	return exact(to.AsTime().Sub(from.AsTime()))
}

// word is the name of an enum's value for people.
func word(value fmt.Stringer) string {
	name := value.String()
	for _, prefix := range []string{
		"JOB_STATUS_", "RUN_STATUS_", "QUEUE_STATUS_", "LOAD_STATUS_", "WORKER_STATUS_", "MISSED_REASON_", "ALERT_RULE_",
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
