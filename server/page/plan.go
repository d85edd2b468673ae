package page

import (
	"net/http"
	"time"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// planView is the drift and the plan, as the command line shows them.
type planView struct {
	Drift, Plan string
	// Notes say what could not be read.
	Notes []string
}

func (p *Page) plan(r *http.Request) (*document, error) {
	var data planView
	drift, err := p.API.JobSets.GetDrift(r.Context(), &jobsv1.GetDriftRequest{})
	if err != nil {
		data.Notes = append(data.Notes, "The drift cannot be read: "+sentence(err)+".")
	} else {
		data.Drift = plantext.Join(plantext.OfDrift(drift))
	}
	if p.Declared != nil {
		if data.Plan, err = p.planText(r); err != nil {
			data.Notes = append(data.Notes, "There is no plan: "+sentence(err)+".")
		}
	}
	return &document{Title: "Plan and drift", View: "plan", Section: "/plan", Data: data}, nil
}

func (p *Page) planText(r *http.Request) (string, error) {
	set, err := p.Declared(r.Context())
	if err != nil {
		return "", err
	}
	answer, err := p.API.JobSets.PlanJobSet(r.Context(), &jobsv1.PlanJobSetRequest{JobSet: set})
	if err != nil {
		return "", err
	}
	return plantext.Join(plantext.OfPlan(answer.GetPlan(), time.UTC)), nil
}
