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

// announcedTimeout is how long Temporal may take to tell the job types that workers
// announce, and then again those that were applied.
const announcedTimeout = 5 * time.Second

// lostTypesFor is how long the job types of a worker that fell silent stay known: after
// an outage of Temporal none lives until they have announced themselves again.
const lostTypesFor = time.Hour

// foreignTypes finds job types by name that this program was not built with: among
// those that workers announce, and else among those of applied jobs. The error says
// why there may be others that were not found.
func (i *invocation) foreignTypes(names ...string) (types []job.Type, incomplete error) {
	c, err := i.connect(i.ctx)
	if err != nil {
		return nil, err
	}
	types, incomplete = i.announcedTypes(c)
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
		}
	}
	return types, incomplete
}

// announcedTypes lists the job types that workers announce. Of a type that several
// announce differently, one that lives has the say, and of these the one that was
// started last.
func (i *invocation) announcedTypes(c *client.Client) ([]job.Type, error) {
	ctx, cancel := context.WithTimeout(i.ctx, announcedTimeout)
	defer cancel()
	services, err := c.Workers.Services(ctx, time.Now().Add(-lostTypesFor))
	if services.Unreadable != nil {
		i.note("What cannot be read is left out: %s.", clean(services.Unreadable.Error()))
	}
	var types []job.Type
	for _, known := range [][]client.LiveService{services.Live, services.Lost} {
		slices.SortStableFunc(known, func(a, b client.LiveService) int { return b.Started.Compare(a.Started) })
		for n := range known {
			for _, served := range known[n].Types {
				types = i.addForeign(types, served.JobType(known[n].Worker), "Service "+known[n].ID()+" announces")
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("the workers cannot all be asked: %w", err)
	}
	return types, err
}

// appliedTypes lists the job types that were kept with the jobs that were applied.
func (i *invocation) appliedTypes(c *client.Client) ([]job.Type, error) {
	ctx, cancel := context.WithTimeout(i.ctx, announcedTimeout)
	defer cancel()
	applied, err := schedules.New(c).Applied(ctx, job.ProviderTOML)
	var types []job.Type
	for _, name := range slices.Sorted(maps.Keys(applied.Types)) {
		kept := applied.Types[name]
		types = i.addForeign(types, kept.JobType(kept.Worker), "The record of what was applied has")
	}
	return types, err
}

// addForeign adds a job type that came from outside, unless it is known already.
func (i *invocation) addForeign(types []job.Type, t job.Type, whence string) []job.Type {
	_, own := findType(i.Types, t.Name)
	if _, known := findType(types, t.Name); own || known {
		return types
	}
	if err := checkAnnounced(t); err != nil {
		i.note("%s what is no job type: %s.", whence, clean(err.Error()))
		return types
	}
	return append(types, t)
}

// checkAnnounced looks at what came from outside.
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

// foreignOf are those of the job types that jobs have and this program was not built
// with, for apply to keep.
func (i *invocation) foreignOf(jobs []job.Job, types []job.Type) map[string]contract.AppliedType {
	foreign := map[string]contract.AppliedType{}
	for _, j := range jobs {
		if _, own := findType(i.Types, j.Type); own {
			continue
		}
		if t, ok := findType(types, j.Type); ok {
			foreign[t.Name] = contract.AppliedType{Worker: t.Worker, ServedType: contract.ServedType{
				Name: t.Name, Description: t.Description, Modes: t.Modes, SpecSchema: t.SpecSchema,
			}}
		}
	}
	return foreign
}
