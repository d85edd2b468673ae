package page

import (
	"net/http"
	"net/url"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// integrationPath is the address of an integration.
func integrationPath(id string) string { return "/integrations/" + url.PathEscape(id) }

func (p *Page) integrations(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	return &document{
		Title: "Integrations", View: "integrations", Section: "/integrations", Revision: p.revision(o),
		Follow: []string{"integrations"}, Data: o.GetIntegrations(),
	}, nil
}

// integrationView is all about one integration.
type integrationView struct {
	*jobsv1.GetIntegrationResponse
	State   string
	Rows    []integrationJob
	Buttons []button
	// Checked is what a check has found, if one was asked for, and CheckLink asks for one.
	Checked   *jobsv1.CheckIntegrationResponse
	CheckLink string
	Notes     []string
}

// integrationJob is a job that an integration has made.
type integrationJob struct {
	*jobsv1.Job
	Mode, Status string
}

func (p *Page) integration(r *http.Request) (*document, error) {
	id := r.PathValue("id")
	answer, err := p.API.Integrations.GetIntegration(r.Context(), &jobsv1.GetIntegrationRequest{Id: id})
	if err != nil {
		return nil, err
	}
	i := answer.GetIntegration()
	data := integrationView{
		GetIntegrationResponse: answer, State: word(i.GetState()), CheckLink: integrationPath(id) + "?check=yes#check",
		Buttons: buttons(p.role(r), verbs.IntegrationVerbs(), verbs.OfIntegration(i), id),
	}
	for _, j := range answer.GetJobs() {
		data.Rows = append(data.Rows, integrationJob{j, verbs.OfJob(j).Job.Mode, word(j.GetState().GetStatus())})
	}
	if r.URL.Query().Has("check") {
		if data.Checked, err = p.API.Integrations.CheckIntegration(r.Context(), &jobsv1.CheckIntegrationRequest{Id: id}); err != nil {
			data.Notes = append(data.Notes, "It cannot be checked: "+sentence(err)+".")
		}
	}
	return &document{Title: id, View: "integration", Section: "/integrations", Follow: []string{"integrations"}, Data: data}, nil
}
