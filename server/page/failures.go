package page

import (
	"context"
	"net/http"
	"strconv"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// topGroups is how many failure groups are shown beside the grid.
const topGroups = 3

// failuresView is the runs that failed lately, in groups.
type failuresView struct {
	*jobsv1.ListFailuresResponse
	// MayRetry says that there are buttons for it.
	MayRetry bool
	// Note says why there is nothing to show.
	Note string
}

// Bounded reports whether there were too many failures to count all of a day.
func (f failuresView) Bounded() bool {
	const clocks = time.Minute // Those of the server and of the browser's request differ.
	return f.ListFailuresResponse != nil && time.Since(f.GetStartTime().AsTime()) < 24*time.Hour-clocks
}

// Left is how many groups are not shown.
func (f failuresView) Left() int { return int(f.GetTotalGroups()) - len(f.GetGroups()) }

// readFailures reads the latest groups; 0 means all.
func (p *Page) readFailures(ctx context.Context, role verbs.Role, limit int) (failuresView, error) {
	answer, err := p.API.Runs.ListFailures(ctx, &jobsv1.ListFailuresRequest{Limit: int32(limit)})
	return failuresView{ListFailuresResponse: answer, MayRetry: verbs.RetryRun.Role <= role}, err
}

// topFailures are the latest groups. That they cannot be read leaves the rest to be seen.
func (p *Page) topFailures(ctx context.Context, role verbs.Role) failuresView {
	view, err := p.readFailures(ctx, role, topGroups)
	if err != nil {
		view.Note = "Failures cannot be read: " + sentence(err) + "."
	}
	return view
}

func (p *Page) failures(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	data, err := p.readFailures(r.Context(), p.role(r), 0)
	if err != nil {
		return nil, err
	}
	return &document{Title: "Failures", View: "failures", Section: "/failures", Revision: p.revision(o), Follow: []string{"jobs"}, Data: data}, nil
}

// addFailures adds the latest groups to an event of the grid's view.
func (p *Page) addFailures(r *http.Request, made *event) error {
	if made.Parts == nil {
		return nil
	}
	text, err := render("failures-top", p.topFailures(r.Context(), p.role(r)))
	made.Parts["failures-top"] = string(text)
	return err
}

// jobsOfFailure are the jobs that have runs of a failure group, each with the latest of them.
func (p *Page) jobsOfFailure(ctx context.Context, name string) (map[string]string, error) {
	runs := map[string]string{}
	request := &jobsv1.ListRunsRequest{PageSize: windowPage, Filter: "failure = " + strconv.Quote(name)}
	for {
		answer, err := p.API.Runs.ListRuns(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, run := range answer.GetRuns() {
			if _, known := runs[run.GetJobId()]; !known {
				runs[run.GetJobId()] = run.GetName()
			}
		}
		if request.PageToken = answer.GetNextPageToken(); request.GetPageToken() == "" {
			return runs, nil
		}
	}
}
