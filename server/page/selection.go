package page

import (
	"net/url"
	"slices"
	"strings"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// selection is which jobs are shown, as the address of the page says it. The script has the
// same rules.
type selection struct {
	// Query is part of an id, a type, or an owner.
	Query string
	// Status is a status, or "" for any.
	Status, Type, Mode, Owner, Provider string
}

func readSelection(values url.Values) selection {
	return selection{
		Query: strings.TrimSpace(values.Get("q")), Status: values.Get("status"), Type: values.Get("type"),
		Mode: values.Get("mode"), Owner: values.Get("owner"), Provider: values.Get("provider"),
	}
}

// holds reports whether a job is shown.
func (s selection) holds(j *jobsv1.JobOverview) bool {
	query := strings.ToLower(s.Query)
	found := func(text string) bool { return strings.Contains(strings.ToLower(text), query) }
	is := func(want, have string) bool { return want == "" || want == have }
	return (found(j.GetId()) || found(j.GetType()) || found(j.GetOwner())) &&
		is(s.Status, word(j.GetStatus())) && is(s.Type, j.GetType()) && is(s.Mode, j.GetMode()) &&
		is(s.Owner, j.GetOwner()) && is(s.Provider, j.GetProvider())
}

// values are the parts of an address that stand for the selection.
func (s selection) values() url.Values {
	values := url.Values{}
	for _, f := range s.Fields() {
		if f.Value != "" {
			values.Set(f.Name, f.Value)
		}
	}
	return values
}

// field is a value of a form.
type field struct{ Name, Value string }

// Fields are the selection as values of a form.
func (s selection) Fields() []field {
	return []field{{"q", s.Query}, {"status", s.Status}, {"type", s.Type}, {"mode", s.Mode}, {"owner", s.Owner}, {"provider", s.Provider}}
}

// of are the jobs that are shown.
func (s selection) of(jobs []*jobsv1.JobOverview) []*jobsv1.JobOverview {
	var chosen []*jobsv1.JobOverview
	for _, j := range jobs {
		if s.holds(j) {
			chosen = append(chosen, j)
		}
	}
	return chosen
}

// choice is a value that people filter by.
type choice struct {
	Value, Link string
	Count       int
	Chosen      bool
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
func (s selection) statuses(jobs []*jobsv1.JobOverview) []choice {
	counts := map[jobsv1.JobStatus]int{}
	for _, j := range jobs {
		counts[j.GetStatus()]++
	}
	link := func(status string) string {
		other := s
		other.Status = status
		if values := other.values(); len(values) > 0 {
			return "/?" + values.Encode()
		}
		return "/"
	}
	all := []choice{{Value: "all", Link: link(""), Count: len(jobs), Chosen: s.Status == ""}}
	for number := range int32(len(jobsv1.JobStatus_name)) {
		status := jobsv1.JobStatus(number)
		if counts[status] > 0 || s.Status == word(status) {
			all = append(all, choice{Value: word(status), Link: link(word(status)), Count: counts[status], Chosen: s.Status == word(status)})
		}
	}
	return all
}
