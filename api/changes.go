package api

import (
	"context"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/myers"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/changes"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// changeService implements dendra.jobs.v1.ChangeService.
type changeService struct{ *Server }

// changeFields are the fields of the filter of ListChanges.
func changeFields() map[string]fieldRule {
	return map[string]fieldRule{
		"job_id": exactText, "queue": exactText, "kind": anyText, "object": anyText, "verb": anyText, "caller": anyText, "change_time": timeBound,
	}
}

// ListChanges implements the service.
func (s *changeService) ListChanges(ctx context.Context, r *jobsv1.ListChangesRequest) (*jobsv1.ListChangesResponse, error) {
	terms, err := readFilter(r.GetFilter(), changeFields())
	if err != nil {
		return nil, err
	}
	pages := pagesOf[uint64](r)
	before, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	subjects, possible := subjectsOf(terms)
	if !possible {
		return &jobsv1.ListChangesResponse{}, nil
	}
	found, next, err := changes.Read(ctx, client, changes.Query{
		Subjects: subjects, Before: before, Size: pageSize(r.GetPageSize()),
		Fits: func(record changes.Record) bool { return matchesChange(terms, record) },
	})
	response := &jobsv1.ListChangesResponse{}
	for _, record := range found {
		response.Changes = append(response.Changes, recordMessage(record))
	}
	if next != 0 {
		response.NextPageToken = pages.write(next)
	}
	return response, err
}

// subjectsOf are the subjects of what a filter names; none means all. False means that nothing can
// match: it names a job and a queue.
func subjectsOf(terms []term) (subjects []string, possible bool) {
	exact := firstExact(terms)
	id, queue := exact["job_id"], exact["queue"]
	switch {
	case id != "" && queue != "":
		return nil, false
	case id != "":
		for _, kind := range kindsOfJobs() {
			subjects = append(subjects, changes.Subject(string(kind), id))
		}
	case queue != "":
		subjects = []string{changes.Subject(string(verbs.KindQueue), queue)}
	}
	return subjects, true
}

// kindsOfJobs are the kinds of which the object is a job.
func kindsOfJobs() []verbs.Kind {
	return []verbs.Kind{verbs.KindJob, verbs.KindRun, verbs.KindBookmark}
}

// matchesChange reports whether a change of the history matches. Subjects have decided on jobs
// and queues, up to characters that they cannot have.
func matchesChange(terms []term, record changes.Record) bool {
	return within(terms, record.Time) && holdAll(terms, func(field string) string {
		switch field {
		case "kind":
			return record.Kind
		case "verb":
			return record.Verb
		case "caller":
			return record.Caller
		default:
			return record.Object
		}
	})
}

// recordMessage is a change of the history.
func recordMessage(record changes.Record) *jobsv1.Change {
	m := &jobsv1.Change{
		ChangeTime: timeOf(record.Time), Caller: record.Caller, Verb: record.Verb, Kind: record.Kind, Object: record.Object, Detail: record.Detail,
		Reason: record.Reason, Result: record.Result, Before: definitionOf(record.Before), After: definitionOf(record.After),
	}
	if m.Before != nil || m.After != nil {
		m.Difference = difference(declaration(m.GetBefore()), declaration(m.GetAfter()))
	}
	return m
}

// definitionOf reads a definition of the history, nil if there is none.
func definitionOf(text []byte) *jobsv1.Job {
	if len(text) == 0 {
		return nil
	}
	m := &jobsv1.Job{}
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, m) != nil {
		return nil
	}
	return m
}

// declaration is the text of a jobs file that declares a job, or its JSON if there is none.
func declaration(m *jobsv1.Job) string {
	if m == nil {
		return ""
	}
	j, problems := Definition(m)
	text, err := jobsfile.TOML(j)
	if len(problems) > 0 || err != nil {
		return protojson.Format(m) + "\n"
	}
	return text
}

// difference is that of two texts, without the lines that name them.
func difference(before, after string) string {
	text, err := udiff.ToUnified("before", "after", before, myers.ComputeEdits(before, after), 3) // of whole lines
	if err != nil {
		return err.Error() + "\n" // The edits are of this very text.
	}
	for _, head := range []string{"--- before\n", "+++ after\n"} {
		text = strings.TrimPrefix(text, head)
	}
	return text
}
