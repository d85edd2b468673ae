package page

import (
	"net/url"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// selection is which jobs are shown, as the address of the page says it. The script has the
// same rules.
type selection struct {
	// Query is part of an id, a type, or an owner.
	Query string
	// Status is a status, or "" for any.
	Status, Type, Mode, Owner, Provider string
	// Ended and Items are [shown] if jobs that have ended, and items of queues, are there too.
	Ended, Items string
}

// shown is the value of a switch that is on.
const shown = "show"

func readSelection(values url.Values) selection {
	return selection{
		Query: strings.TrimSpace(values.Get("q")), Status: values.Get("status"), Type: values.Get("type"),
		Mode: values.Get("mode"), Owner: values.Get("owner"), Provider: values.Get("provider"),
		Ended: values.Get("ended"), Items: values.Get("items"),
	}
}

// away reports whether a job is not shown, whatever people filter by: it has ended, or its
// queue has a row in its place.
func (s selection) away(j *jobsv1.JobOverview) bool {
	if j.GetEnded() {
		return s.Ended != shown
	}
	return s.Items != shown && api.InQueue(j)
}

// holdsQueue reports whether the row of a queue is shown.
func (s selection) holdsQueue(name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(s.Query)) && s.Status+s.Type+s.Owner+s.Provider == "" &&
		(s.Mode == "" || s.Mode == verbs.Queued)
}

// holds reports whether a job that is not away is shown.
func (s selection) holds(j *jobsv1.JobOverview) bool {
	query := strings.ToLower(s.Query)
	found := func(text string) bool { return strings.Contains(strings.ToLower(text), query) }
	is := func(want, have string) bool { return want == "" || want == have }
	return (found(j.GetId()) || found(j.GetType()) || found(j.GetOwner())) &&
		is(s.Status, word(j.GetStatus())) && is(s.Type, j.GetType()) && is(s.Mode, j.GetMode()) &&
		is(s.Owner, j.GetOwner()) && is(s.Provider, j.GetProvider())
}

// field is a value of a form.
type field struct{ Name, Value string }

// Fields are the selection as values of a form.
func (s selection) Fields() []field {
	return []field{
		{"q", s.Query}, {"status", s.Status}, {"type", s.Type}, {"mode", s.Mode}, {"owner", s.Owner}, {"provider", s.Provider}, {"ended", s.Ended}, {"items", s.Items},
	}
}

// of are the jobs that are shown.
func (s selection) of(jobs []*jobsv1.JobOverview) []*jobsv1.JobOverview {
	var chosen []*jobsv1.JobOverview
	for _, j := range jobs {
		if !s.away(j) && s.holds(j) {
			chosen = append(chosen, j)
		}
	}
	return chosen
}

// choice is a value that people filter by.
type choice struct {
	Value, Label, Link string
	Count              int
	Chosen             bool
}

// menu is a field that people filter by.
type menu struct {
	Name, Label string
	Choices     []choice
}

// menus are the fields besides the status, each with the values that there are.
func (s selection) menus(jobs []*jobsv1.JobOverview) []menu {
	menus := []menu{{Name: "type", Label: "Type"}, {Name: "mode", Label: "Mode"}, {Name: "owner", Label: "Owner"}, {Name: "provider", Label: "Provider"}}
	of := []func(*jobsv1.JobOverview) string{
		(*jobsv1.JobOverview).GetType, (*jobsv1.JobOverview).GetMode, (*jobsv1.JobOverview).GetOwner, (*jobsv1.JobOverview).GetProvider,
	}
	chosen := []string{s.Type, s.Mode, s.Owner, s.Provider}
	for i, value := range of {
		counts := map[string]int{}
		for _, j := range jobs {
			counts[value(j)]++
		}
		if chosen[i] != "" {
			counts[chosen[i]] += 0 // It is shown though no job has it.
		}
		for value, count := range counts {
			if value != "" {
				menus[i].Choices = append(menus[i].Choices, choice{Value: value, Count: count, Chosen: value == chosen[i]})
			}
		}
		slices.SortFunc(menus[i].Choices, func(a, b choice) int { return strings.Compare(a.Value, b.Value) })
	}
	return menus
}

// statuses are those that jobs have, each with the address that shows them alone.
func (s selection) statuses(jobs []*jobsv1.JobOverview, link func(name, value string) string) []choice {
	counts := map[jobsv1.JobStatus]int{}
	for _, j := range jobs {
		counts[j.GetStatus()]++
	}
	all := []choice{{Value: "all", Link: link("status", ""), Count: len(jobs), Chosen: s.Status == ""}}
	for number := range int32(len(jobsv1.JobStatus_name)) {
		status := jobsv1.JobStatus(number)
		if counts[status] > 0 || s.Status == word(status) {
			all = append(all, choice{Value: word(status), Link: link("status", word(status)), Count: counts[status], Chosen: s.Status == word(status)})
		}
	}
	return all
}
