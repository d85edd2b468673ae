package page

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// formTime is how forms write times, in UTC.
const formTime = "2006-01-02T15:04"

// done is what an action has done.
type done struct {
	// Text is one sentence.
	Text string
	// Link leads to what came of it. Empty if there is nothing.
	Link string
	// Preview is set if nothing was done yet: the sentence is about what would be.
	Preview bool
	// Names are some of what the action concerns.
	Names []string
}

// verb is an action of the API that the page offers.
type verb struct {
	Label string
	// Confirm is the question before it. Empty if there is none. The first %s stands for
	// what it is done to.
	Confirm string
	// Object is the field that says what it is done to.
	Object string
	// preview has the server say what would be done.
	preview func(context.Context, *api.Clients, url.Values) (*done, error)
	do      func(context.Context, *api.Clients, url.Values) (*done, error)
}

// button is a form with one button, or a link.
type button struct {
	Verb, Label, Link string
	Fields            []field
	// Asks says that there is a question before it.
	Asks bool
}

// named is the button with another text.
func (b button) named(label string) button {
	b.Label = label
	return b
}

// Name is what the button is called where only one thing is to be told from another.
func (b button) Name() string {
	if len(b.Fields) == 0 {
		return b.Label
	}
	values := make([]string, len(b.Fields))
	for i, f := range b.Fields {
		values[i] = f.Value
	}
	return b.Label + " " + strings.Join(values, " ")
}

// verbButton is the button of a verb. After its name come pairs of fields and values.
func verbButton(name string, pairs ...string) button {
	v := allVerbs()[name]
	b := button{Verb: name, Label: v.Label, Asks: v.Confirm != "" || v.preview != nil}
	for i := 0; i+1 < len(pairs); i += 2 {
		b.Fields = append(b.Fields, field{pairs[i], pairs[i+1]})
	}
	return b
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// said is the end of an action that tells nothing but an error.
func said(err error, format string, args ...any) (*done, error) {
	if err != nil {
		return nil, err
	}
	return &done{Text: fmt.Sprintf(format, args...)}, nil
}

// badField is the error of a form whose field cannot be read.
func badField(name string) error {
	return connect.NewError(connect.CodeInvalidArgument, "the field "+name+" cannot be read")
}

// allVerbs are all actions by their names in addresses.
func allVerbs() map[string]verb {
	all := map[string]verb{}
	for _, some := range []map[string]verb{jobVerbs, runVerbs, queueVerbs, pipelineVerbs, silenceVerbs} {
		for name, v := range some {
			all[name] = v
		}
	}
	return all
}

var jobVerbs = map[string]verb{
	"run-job": {Label: "Run now", Object: "id", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		answer, err := c.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: v.Get("id")})
		if err != nil {
			return nil, err
		}
		is := &done{Text: v.Get("id") + " was told to run."}
		if name := answer.GetRunName(); name != "" {
			is.Text, is.Link = "A run of "+v.Get("id")+" has started.", runPath(name)
		}
		if answer.GetPlace() != nil {
			is.Text = fmt.Sprintf("%s is in its queue, with %s before it.", v.Get("id"), plural(answer.GetPlace().GetAhead(), "item", "items"))
		}
		return is, nil
	}},
	"stop-job": {Label: "Stop…", Object: "id", Confirm: "Stop %s? What it does now ends. A continuous job stays stopped until it is restarted.",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			_, err := c.Jobs.StopJob(ctx, &jobsv1.StopJobRequest{Id: v.Get("id"), Reason: v.Get("reason")})
			return said(err, "%s was told to stop.", v.Get("id"))
		}},
	"restart-job": {Label: "Restart", Object: "id", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Jobs.RestartJob(ctx, &jobsv1.RestartJobRequest{Id: v.Get("id"), Reason: v.Get("reason")})
		return said(err, "%s was restarted.", v.Get("id"))
	}},
	"pause-job": {Label: "Pause", Object: "id", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: v.Get("id"), Reason: v.Get("reason")})
		return said(err, "%s is paused.", v.Get("id"))
	}},
	"resume-job": {Label: "Resume", Object: "id", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		_, err := c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: v.Get("id"), Reason: v.Get("reason")})
		return said(err, "%s goes on.", v.Get("id"))
	}},
	"skip-next": {Label: "Skip next start", Object: "id", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		answer, err := c.Jobs.SkipNextStart(ctx, &jobsv1.SkipNextStartRequest{Id: v.Get("id")})
		if err != nil {
			return nil, err
		}
		return said(nil, "The start of %s at %s does not take place.", v.Get("id"), answer.GetSkippedTime().AsTime().UTC().Format("2006-01-02 15:04:05 UTC"))
	}},
	"backfill-job": {Label: "Backfill…", Object: "id",
		preview: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			starts, err := backfill(ctx, c, v, true)
			if err != nil {
				return nil, err
			}
			is := &done{Preview: true, Text: fmt.Sprintf("Run %s for %s?", v.Get("id"), plural(len(starts), "past start", "past starts"))}
			for _, at := range starts[:min(len(starts), maxNames)] {
				is.Names = append(is.Names, at.AsTime().UTC().Format("2006-01-02 15:04:05 UTC"))
			}
			return is, nil
		},
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			starts, err := backfill(ctx, c, v, false)
			return said(err, "%s runs for %s.", v.Get("id"), plural(len(starts), "past start", "past starts"))
		}},
}

func backfill(ctx context.Context, c *api.Clients, v url.Values, only bool) ([]*timestamppb.Timestamp, error) {
	from, err := time.ParseInLocation(formTime, v.Get("from"), time.UTC)
	if err != nil {
		return nil, badField("from")
	}
	to, err := time.ParseInLocation(formTime, v.Get("to"), time.UTC)
	if err != nil {
		return nil, badField("to")
	}
	answer, err := c.Jobs.BackfillJob(ctx, &jobsv1.BackfillJobRequest{
		Id: v.Get("id"), StartTime: timestamppb.New(from), EndTime: timestamppb.New(to), ValidateOnly: only,
	})
	return answer.GetStartTimes(), err
}

var runVerbs = map[string]verb{
	"retry-run": {Label: "Retry", Object: "name", do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
		answer, err := c.Runs.RetryRun(ctx, &jobsv1.RetryRunRequest{Name: v.Get("name")})
		if err != nil {
			return nil, err
		}
		if answer.GetRunName() == "" {
			return said(nil, "The job is in its queue again, as item %d.", answer.GetSequence())
		}
		return &done{Text: "A new run has started in place of this one.", Link: runPath(answer.GetRunName())}, nil
	}},
	"cancel-run": {Label: "Cancel…", Object: "name", Confirm: "Cancel %s? Its handler has its grace period to end.",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			_, err := c.Runs.CancelRun(ctx, &jobsv1.CancelRunRequest{Name: v.Get("name"), Reason: v.Get("reason")})
			return said(err, "The run was asked to stop.")
		}},
	"terminate-run": {Label: "Terminate…", Object: "name", Confirm: "Terminate %s? It ends at once, over its handler's head.",
		do: func(ctx context.Context, c *api.Clients, v url.Values) (*done, error) {
			_, err := c.Runs.TerminateRun(ctx, &jobsv1.TerminateRunRequest{Name: v.Get("name"), Reason: v.Get("reason")})
			return said(err, "The run was terminated.")
		}},
}
