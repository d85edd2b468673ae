package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"connectrpc.com/connect/v2"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// bulkVerb is an action on all jobs that are shown.
type bulkVerb struct {
	Name, Label string
	// Text is the question, with the number of jobs.
	Text string
	// fits says whether a job is one to do it to.
	fits func(*jobsv1.JobOverview) bool
	do   func(context.Context, *api.Clients, *jobsv1.JobOverview) error
}

var bulkVerbs = []bulkVerb{
	{"retry", "Retry failed…", "Retry the latest run of %s that failed?", lastFailed, retryLast},
	{"run", "Run…", "Start a run of %s?", shown(verbs.RunJob),
		func(ctx context.Context, c *api.Clients, j *jobsv1.JobOverview) error {
			_, err := c.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: j.GetId()})
			return err
		}},
	{"pause", "Pause…", "Pause %s?", shown(verbs.PauseJob), func(ctx context.Context, c *api.Clients, j *jobsv1.JobOverview) error {
		_, err := c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: j.GetId()})
		return err
	}},
	{"resume", "Resume…", "Resume %s?", shown(verbs.ResumeJob),
		func(ctx context.Context, c *api.Clients, j *jobsv1.JobOverview) error {
			_, err := c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: j.GetId()})
			return err
		}},
	{"cancel", "Cancel…", "Stop what %s now? Continuous jobs stay stopped until they are restarted.", func(j *jobsv1.JobOverview) bool {
		// What a job does now is in its outcomes.
		return verbs.StopJob.Applies(verbs.OfOverview(j)) &&
			(j.GetStatus() == jobsv1.JobStatus_JOB_STATUS_RUNNING || strings.ContainsAny(j.GetOutcomes(), "RW"))
	}, func(ctx context.Context, c *api.Clients, j *jobsv1.JobOverview) error {
		_, err := c.Jobs.StopJob(ctx, &jobsv1.StopJobRequest{Id: j.GetId()})
		return err
	}},
}

// shown says whether a verb applies to a job that is shown.
func shown(v *verbs.Verb) func(*jobsv1.JobOverview) bool {
	return func(j *jobsv1.JobOverview) bool { return v.Applies(verbs.OfOverview(j)) }
}

// question is the question about so many jobs.
func (b bulkVerb) question(n int) string {
	jobs := plural(n, "job", "jobs")
	if b.Name == "cancel" {
		jobs = plural(n, "job does", "jobs do")
	}
	return fmt.Sprintf(b.Text, jobs)
}

// Letters of runs: those that failed by themselves, and those that say nothing about that:
// starts without a run, and runs that did nothing. What people have canceled or terminated
// stays as they left it.
const (
	failedLetters = "FT"
	idleLetters   = "MHP"
)

// lastFailed says whether the latest run that has ended failed.
func lastFailed(j *jobsv1.JobOverview) bool {
	ended := strings.TrimRight(j.GetOutcomes(), idleLetters)
	return ended != "" && strings.ContainsRune(failedLetters, rune(ended[len(ended)-1])) && j.GetMode() != "continuous"
}

// retryLast retries the latest run of a job that failed.
func retryLast(ctx context.Context, c *api.Clients, j *jobsv1.JobOverview) error {
	answer, err := c.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{PageSize: 20, Filter: jobFilter(j.GetId())})
	if err != nil {
		return err
	}
	for _, run := range answer.GetRuns() {
		switch letter := verbs.Letter(run.GetStatus()); {
		case strings.Contains(failedLetters, letter):
			_, err := c.Runs.RetryRun(ctx, &jobsv1.RetryRunRequest{Name: run.GetName()})
			return err
		case !strings.Contains(idleLetters, letter):
			return connect.NewError(connect.CodeFailedPrecondition, "its latest run has not failed")
		}
	}
	return connect.NewError(connect.CodeFailedPrecondition, "it has no failed run")
}

// bulkAtOnce is how many jobs are worked on at the same time.
const bulkAtOnce = 8

// bulk does something to all jobs that are shown and fit. The first time it tells how many
// these are; with that number and their names confirmed, it does it.
func (p *Page) bulk(w http.ResponseWriter, r *http.Request) {
	values, ok := p.form(w, r)
	if !ok {
		return
	}
	var chosen *bulkVerb
	for i := range bulkVerbs {
		if bulkVerbs[i].Name == values.Get("verb") {
			chosen = &bulkVerbs[i]
		}
	}
	if chosen == nil {
		p.reply(w, r, http.StatusNotFound, &answer{Title: "Not done", Text: "There is no such action."})
		return
	}
	o, err := p.readOverview(r.Context(), defaultRuns)
	if err != nil {
		p.reply(w, r, errorStatus(err), &answer{Title: "Nothing was done", Text: "Nothing was done: " + sentence(err) + "."})
		return
	}
	var jobs []*jobsv1.JobOverview
	for _, j := range readSelection(values).of(o.GetJobs()) {
		if chosen.fits(j) {
			jobs = append(jobs, j)
		}
	}
	label := strings.TrimSuffix(chosen.Label, "…")
	switch mark := markOf(jobs); {
	case len(jobs) == 0:
		p.reply(w, r, http.StatusConflict, &answer{Title: label, Text: "None of the jobs that are shown is one to do this to."})
	case values.Get("confirmed") == "yes" && values.Get("chosen") == mark:
		p.reply(w, r, http.StatusOK, p.doAll(r.Context(), chosen, label, jobs))
	default:
		a := ask(r, label, chosen.question(len(jobs)), values)
		if values.Get("confirmed") == "yes" {
			a.Text = "Meanwhile these are other jobs. " + a.Text
		}
		a.Fields = append(a.Fields, field{"chosen", mark})
		for _, j := range jobs[:min(len(jobs), maxNames)] {
			a.Names = append(a.Names, j.GetId())
		}
		a.More = len(jobs) - len(a.Names)
		p.reply(w, r, http.StatusOK, a)
	}
}

// markOf stands for a list of jobs: people confirm what they have seen.
func markOf(jobs []*jobsv1.JobOverview) string {
	hash := sha256.New()
	for _, j := range jobs {
		_, _ = hash.Write([]byte(j.GetId() + "\n")) // It never fails.
	}
	return strconv.Itoa(len(jobs)) + "-" + hex.EncodeToString(hash.Sum(nil))[:16]
}

// doAll does it to each job, and tells where it failed.
func (p *Page) doAll(ctx context.Context, v *bulkVerb, label string, jobs []*jobsv1.JobOverview) *answer {
	var (
		mu     sync.Mutex
		failed []string
		group  errgroup.Group
	)
	group.SetLimit(bulkAtOnce)
	for _, j := range jobs {
		group.Go(func() error {
			if err := v.do(ctx, p.API, j); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, j.GetId()+": "+sentence(err))
			}
			return nil
		})
	}
	_ = group.Wait() // The errors are in failed.
	a := &answer{
		OK: len(failed) == 0, Title: label, Text: fmt.Sprintf("Done for %d of %s.", len(jobs)-len(failed), plural(len(jobs), "job", "jobs")),
		Names: failed[:min(len(failed), maxNames)],
	}
	a.More = len(failed) - len(a.Names)
	return a
}
