package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// declaredJobs are the jobs of a request, checked.
type declaredJobs struct {
	jobs  []job.Job
	known *known
}

// declared reads and checks the jobs of a request, which get the provider. Field names one
// of them in the request: job, or jobs[3]. What is wrong is one error; no more of it is
// looked for than the error has.
func (s *Server) declared(ctx context.Context, provider job.Provider, messages []*jobsv1.Job, field func(i int) string) (*declaredJobs, error) {
	d := &declaredJobs{jobs: make([]job.Job, len(messages))}
	var wrong []violation
	problems := make([][]job.Problem, len(messages))
	for i, m := range messages {
		d.jobs[i], problems[i] = Definition(m)
		d.jobs[i].Provider = provider
	}
	d.known = s.types.forJobs(ctx, d.jobs)
	first := map[string]int{}
	for i := range d.jobs {
		if len(wrong) > maxViolations {
			break
		}
		found, err := d.known.check(&d.jobs[i])
		if err != nil {
			return nil, err
		}
		for _, problem := range append(problems[i], found...) {
			wrong = append(wrong, violation{fieldOf(field(i), problem), problem.Message})
		}
		if before, ok := first[d.jobs[i].ID]; ok {
			wrong = append(wrong, violation{field(i) + ".id", fmt.Sprintf("%s has the same id", field(before))})
		} else {
			first[d.jobs[i].ID] = i
		}
	}
	if len(wrong) > 0 {
		return nil, badRequest(wrong...)
	}
	return d, nil
}

// declaredJob is declared for the field job of a request.
func (s *Server) declaredJob(ctx context.Context, m *jobsv1.Job) (job.Job, *known, error) {
	d, err := s.declared(ctx, job.ProviderAPI, []*jobsv1.Job{m}, func(int) string { return "job" })
	if err != nil {
		return job.Job{}, nil, err
	}
	return d.jobs[0], d.known, nil
}

// check completes a job with what its type says, and lists all that is wrong with it.
func (k *known) check(j *job.Job) ([]job.Problem, error) {
	t, ok := k.find(j.Type, j.ID)
	if !ok {
		path, name, names := "type", j.Type, k.names()
		if name == "" {
			path = "id"
			name, _, _ = strings.Cut(j.ID, ".")
			for i := range names {
				names[i] = job.SnakeCase(k.types[i].Name)
			}
		}
		if k.incomplete != nil {
			return nil, fmt.Errorf("job type %.80q is not known here, and it may be that of a worker: %w", name, k.incomplete)
		}
		return []job.Problem{{Path: []string{path}, Message: schema.Unknown("job type", name, names)}}, nil
	}
	spec, err := t.schema()
	if err != nil {
		return nil, err
	}
	j.Type, j.Worker = t.Name, t.Worker
	problems := j.Validate()
	if job.SpecBytes(j.Spec) <= job.MaxSpecBytes { // Else that is what is wrong with it.
		problems = append(schema.CheckSpec(t.Type, spec, j.Spec), problems...)
	}
	if err := t.CheckAllows(j.Mode()); err != nil {
		problems = append(problems, job.Problem{Path: []string{strings.ReplaceAll(string(j.Mode()), "-", "_")}, Message: err.Error()})
	}
	return problems, nil
}
