package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/specschema"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// announcedTimeout bounds each of the two calls for external job types.
const announcedTimeout = 5 * time.Second

// lostTypesFor is how long the job types of a lost worker stay known: after an outage of
// Temporal all workers are lost until they announce themselves again.
const lostTypesFor = time.Hour

// externalTypes finds job types by name that are not built into this program: among
// those that workers announce, and else among those of applied jobs. The error says
// why the list may be incomplete.
func (i *invocation) externalTypes(names ...string) (types []job.Type, incomplete error) {
	c, err := i.connect(i.ctx)
	if err != nil {
		return nil, err
	}
	types, incomplete = i.announcedTypes(c, names)
	if !slices.ContainsFunc(names, func(name string) bool { _, found := findType(types, name); return !found }) {
		return types, nil
	}
	kept, err := i.appliedTypes(c)
	if incomplete == nil {
		incomplete = err
	}
	for _, t := range kept {
		if _, found := findType(types, t.Name); !found {
			types = append(types, t)
			i.noteUnserved(t.Name, names, "that of its last apply")
		}
	}
	return types, incomplete
}

// noteUnserved warns of a job type that is asked for by name and has no live worker.
func (i *invocation) noteUnserved(typeName string, names []string, source string) {
	for _, name := range names {
		if name == typeName || name == job.SnakeCase(typeName) {
			i.note("No live worker serves job type %s: its schema is %s.", clean(typeName), source)
			return
		}
	}
}

// announcedTypes lists the job types that workers announce. If workers announce a type
// differently, a live worker comes before a lost one, and a later start before an
// earlier one. It warns of those of the names that only lost ones have.
func (i *invocation) announcedTypes(c *client.Client, names []string) ([]job.Type, error) {
	ctx, cancel := context.WithTimeout(i.ctx, announcedTimeout)
	defer cancel()
	services, err := c.Workers.Services(ctx, time.Now().Add(-lostTypesFor))
	if services.Unreadable != nil {
		i.note("A service is left out: %s.", clean(services.Unreadable.Error()))
	}
	var types []job.Type
	for _, known := range [][]client.LiveService{services.Live, services.Lost} {
		slices.SortStableFunc(known, func(a, b client.LiveService) int { return b.Started.Compare(a.Started) })
		for n := range known {
			for _, served := range known[n].Types {
				before := len(types)
				types = i.addExternal(types, served.JobType(known[n].Worker), "service "+known[n].ID())
				if len(types) > before && known[n].State == client.ServiceLost {
					i.noteUnserved(served.Name, names, "that of the lost "+known[n].ID())
				}
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("list the job types of workers: %w", err)
	}
	return types, err
}

// appliedTypes lists the job types that apply recorded with the jobs.
func (i *invocation) appliedTypes(c *client.Client) ([]job.Type, error) {
	ctx, cancel := context.WithTimeout(i.ctx, announcedTimeout)
	defer cancel()
	applied, err := schedules.New(c).Applied(ctx, job.ProviderTOML)
	var types []job.Type
	for _, name := range slices.Sorted(maps.Keys(applied.Types)) {
		kept := applied.Types[name]
		types = i.addExternal(types, kept.JobType(kept.Worker), "the record of applied jobs")
	}
	return types, err
}

// addExternal adds a job type, unless it is invalid or known already.
func (i *invocation) addExternal(types []job.Type, t job.Type, source string) []job.Type {
	_, own := findType(i.Types, t.Name)
	if _, known := findType(types, t.Name); own || known {
		return types
	}
	if err := checkAnnounced(t); err != nil {
		i.note("A job type of %s is invalid: %s.", source, clean(err.Error()))
		return types
	}
	return append(types, t)
}

// checkAnnounced validates a job type that another program announced.
func checkAnnounced(t job.Type) error {
	if err := job.CheckTypeName(t.Name); err != nil {
		return err
	}
	if err := job.CheckKey("worker type", string(t.Worker)); err != nil {
		return err
	}
	_, _, err := specschema.OfType(t)
	return err
}

// externalOf selects the external job types of jobs, for apply to record.
func (i *invocation) externalOf(jobs []job.Job, types []job.Type) map[string]contract.AppliedType {
	external := map[string]contract.AppliedType{}
	for _, j := range jobs {
		if _, own := findType(i.Types, j.Type); own {
			continue
		}
		if t, ok := findType(types, j.Type); ok {
			external[t.Name] = contract.AppliedType{Worker: t.Worker, ServedType: contract.ServedType{
				Name: t.Name, Description: t.Description, Modes: t.Modes, SpecSchema: t.SpecSchema,
			}}
		}
	}
	return external
}
