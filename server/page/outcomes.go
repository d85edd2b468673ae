package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// latestRuns are the runs of a job of which outcomes are counted back: the latest first, and
// more than so many, if there are.
func (p *Page) latestRuns(ctx context.Context, id string, back int) ([]*jobsv1.Run, error) {
	answer, err := p.API.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{PageSize: int32(max(100, back+1)), Filter: jobFilter(id)})
	if err != nil {
		return nil, err
	}
	runs := slices.Clone(answer.GetRuns())
	slices.SortStableFunc(runs, func(a, b *jobsv1.Run) int {
		return b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime())
	})
	return runs, nil
}

// outcomeOf is the run of an outcome.
func (p *Page) outcomeOf(ctx context.Context, id string, back int) (*jobsv1.Run, error) {
	runs, err := p.latestRuns(ctx, id, back)
	if err != nil {
		return nil, err
	}
	if back >= len(runs) {
		return nil, connect.NewError(connect.CodeNotFound, "Temporal does not keep this run any more")
	}
	return runs[back], nil
}

// readBack reads how many runs lie between an outcome and now.
func readBack(r *http.Request) (int, error) {
	back, err := strconv.Atoi(r.PathValue("back"))
	if err != nil || back < 0 || back >= windowPage {
		return 0, errNoView
	}
	return back, nil
}

// outcome leads from an outcome in the grid to its run. Outcomes are counted back from the
// latest, without starts that have no run.
func (p *Page) outcome(w http.ResponseWriter, r *http.Request) {
	var run *jobsv1.Run
	back, err := readBack(r)
	if err == nil {
		run, err = p.outcomeOf(r.Context(), r.PathValue("id"), back)
	}
	if err != nil {
		p.show(func(*http.Request) (*document, error) { return nil, err }).ServeHTTP(w, r)
		return
	}
	http.Redirect(w, r, "/runs/"+url.PathEscape(run.GetName()), http.StatusSeeOther)
}

// card is what is told of an outcome beside it: of a run, or of a start without one.
type card struct {
	JobID string
	Run   *jobsv1.Run
	// Why is the first line of what the run failed with, or of what it waits for.
	Why    string
	Missed *jobsv1.MissedStart
	// Failed says why nothing is told.
	Failed string
}

// card answers with the card of an outcome. With missed it is that of a start without a run:
// of those just before the run, that one counted back from the latest.
func (p *Page) card(w http.ResponseWriter, r *http.Request) {
	data, err := p.readCard(r)
	status := http.StatusOK
	if err != nil {
		var doc *document
		status, doc = p.failed(r, err)
		data = &card{Failed: doc.Data.(string)} //nolint:forcetypeassert // That of an error is text.
	}
	text, err := render("card", data)
	if err != nil {
		p.Logger.ErrorContext(r.Context(), "a card cannot be shown", "error", err)
		http.Error(w, "This card cannot be shown. The server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) //nolint:gosec // The template has escaped it. Whoever has left needs no answer.
}

func (p *Page) readCard(r *http.Request) (*card, error) {
	ctx, id := r.Context(), r.PathValue("id")
	back, err := readBack(r)
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Has("missed") {
		missed, err := p.missedStart(ctx, id, back, r.URL.Query().Get("missed"))
		return &card{JobID: id, Missed: missed}, err
	}
	run, err := p.outcomeOf(ctx, id, back)
	if err != nil {
		return nil, err
	}
	answer, err := p.API.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: run.GetName()})
	if err != nil {
		return nil, err
	}
	run = answer.GetRun()
	made := &card{JobID: id, Run: run}
	for _, text := range []string{run.GetErrorMessage(), run.GetWaitReason(), run.GetLastError(), run.GetMessage()} {
		if made.Why == "" {
			made.Why, _, _ = strings.Cut(text, "\n")
		}
	}
	return made, nil
}

// missedStart finds a start without a run among those between two runs: after the one that
// lies so many back, and before the next one.
func (p *Page) missedStart(ctx context.Context, id string, back int, which string) (*jobsv1.MissedStart, error) {
	at, err := strconv.Atoi(which)
	if err != nil || at < 0 {
		return nil, errNoView
	}
	runs, err := p.latestRuns(ctx, id, back)
	if err != nil {
		return nil, err
	}
	request := &jobsv1.ListMissedStartsRequest{
		StartTime: timestamppb.New(timestamppb.Now().AsTime().Add(-p.MissedSince)), Filter: "id = " + strconv.Quote(id),
	}
	due := func(run *jobsv1.Run) *timestamppb.Timestamp {
		if run.GetScheduledTime() != nil {
			return run.GetScheduledTime()
		}
		return run.GetStartTime()
	}
	if back < len(runs) {
		request.StartTime = due(runs[back])
	}
	if back > 0 && back <= len(runs) {
		request.EndTime = due(runs[back-1])
	}
	answer, err := p.API.Jobs.ListMissedStarts(ctx, request)
	if err != nil {
		return nil, err
	}
	if at >= len(answer.GetMissedStarts()) {
		return nil, connect.NewError(connect.CodeNotFound, "this start is not known any more")
	}
	return answer.GetMissedStarts()[at], nil
}
