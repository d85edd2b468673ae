package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// bulkButtons are those that a role may press.
func bulkButtons(role verbs.Role) []button {
	var made []button
	for _, v := range verbs.ManyJobsVerbs() {
		if v.Role <= role {
			made = append(made, button{Verb: v.Name, Label: title(v) + "…"})
		}
	}
	return made
}

// doOne does it to a job, or to its latest run that tells how it does. If some runs are meant that
// failed alike, that is one of them.
func (p *Page) doOne(ctx context.Context, v *verbs.Verb, id string, alike map[string]string, args verbs.Args) (verbs.Done, error) {
	args.Names = []string{id}
	if v.Kind == verbs.KindRun {
		run, err := p.API.RunToRetry(ctx, id)
		if err != nil {
			return verbs.Done{}, err
		}
		if alike != nil && alike[id] != run.GetName() {
			return verbs.Done{}, connect.NewError(connect.CodeFailedPrecondition, "its latest run failed in another way")
		}
		args.Names = []string{run.GetName()}
	}
	return v.Do(ctx, p.API.Calls, args)
}

// bulk does something to all jobs that are shown and fit. The first time it tells how many
// these are; with that number and their names confirmed, it does it.
func (p *Page) bulk(w http.ResponseWriter, r *http.Request) {
	values, ok := p.form(w, r)
	if !ok {
		return
	}
	v := verbs.Find(func(v *verbs.Verb) bool { return v.ManyJobs && v.Name == values.Get("verb") })
	if v == nil {
		p.reply(w, r, http.StatusNotFound, unknown())
		return
	}
	o, err := p.readOverview(r.Context(), defaultRuns)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	chosen := readSelection(values).of(o.GetJobs())
	var alike map[string]string // the runs of a failure group, if one is chosen
	if name := values.Get("failure"); name != "" {
		if alike, err = p.jobsOfFailure(r.Context(), name); err != nil {
			p.fail(w, r, err)
			return
		}
	}
	var ids []string
	for _, j := range chosen {
		if _, fails := alike[j.GetId()]; (alike == nil || fails) && v.AppliesAmong(verbs.OfOverview(j)) {
			ids = append(ids, j.GetId())
		}
	}
	confirmed := values.Get("confirmed") == "yes"
	switch mark := markOf(ids); {
	case len(ids) == 0:
		p.reply(w, r, http.StatusConflict, &answer{Title: title(v), Text: "None of the jobs that are shown is one to do this to."})
	case confirmed && values.Get("chosen") == mark:
		args, err := readArgs(v, values)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		p.doAll(w, r, v, ids, alike, args)
	default:
		a := ask(r, v, v.AskMany(len(ids)), values)
		if confirmed {
			a.Text = "Meanwhile these are other jobs. " + a.Text
		}
		a.Fields = append(a.Fields, field{"chosen", mark})
		a.name(ids)
		p.reply(w, r, http.StatusOK, a)
	}
}

// markOf stands for a list of jobs: people confirm what they have seen.
func markOf(ids []string) string {
	hash := sha256.New()
	for _, id := range ids {
		_, _ = hash.Write([]byte(id + "\n")) // It never fails.
	}
	return strconv.Itoa(len(ids)) + "-" + hex.EncodeToString(hash.Sum(nil))[:16]
}

// progress is how many of many have ended.
type progress struct {
	Title string `json:"title"`
	Ended int    `json:"ended"`
	Of    int    `json:"of"`
}

// doAll does it to each job, and tells where it failed. The script gets a line for each job
// that has ended, and the answer as the last line. Whoever closes the connection breaks it off.
func (p *Page) doAll(w http.ResponseWriter, r *http.Request, v *verbs.Verb, ids []string, alike map[string]string, args verbs.Args) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // Not every connection has one.
	told := func(ended int) {
		if wantsJSON(r) {
			_ = json.NewEncoder(w).Encode(progress{title(v), ended, len(ids)}) // Whoever has left needs no answer.
			_ = control.Flush()                                                // The same.
		}
	}
	if wantsJSON(r) {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	told(0)
	answers := verbs.Each(r.Context(), len(ids), func(ctx context.Context, i int) (verbs.Done, error) {
		return p.doOne(ctx, v, ids[i], alike, args)
	}, told)
	var failed []string
	left := 0
	for i, one := range answers {
		switch {
		case errors.Is(one.Err, verbs.ErrNotDone):
			left++
		case one.Err != nil:
			failed = append(failed, ids[i]+": "+sentence(one.Err))
		}
	}
	if left > 0 {
		p.Logger.InfoContext(r.Context(), "actions on many jobs were broken off", "verb", v.Name, "jobs", len(ids), "not done", left)
	}
	a := &answer{
		OK: len(failed)+left == 0, Title: title(v),
		Text: fmt.Sprintf("Done for %d of %s.", len(ids)-len(failed)-left, plantext.Counted(len(ids), "job", "jobs")),
	}
	a.name(failed)
	if wantsJSON(r) { // The status was sent before the first line.
		p.encode(w, r, a)
		return
	}
	p.reply(w, r, http.StatusOK, a)
}
