package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
	"github.com/dendrascience/dendra-jobs/schedules"
)

const (
	// typesTimeout bounds each of the calls for external job types.
	typesTimeout = 5 * time.Second
	// lostTypesFor is how long the job types of a lost worker stay known.
	lostTypesFor = time.Hour
)

// types finds job types and checks specs by them.
type types struct {
	client *client.Client
	syncer *schedules.Syncer
	own    []jobType
}

// jobType is a job type.
type jobType struct {
	job.Type
	// schema is that of its spec, nil if it takes everything; or why the type cannot be used.
	// It is made when it is needed: most commands need none.
	schema func() (*schema.Schema, error)
	// external says that the type is not one of this program.
	external bool
	// keptFrom is where an external type is known from that no live worker serves.
	keptFrom string
}

func newJobType(t job.Type, external bool) jobType {
	return jobType{Type: t, external: external, schema: sync.OnceValues(func() (*schema.Schema, error) {
		if external {
			if err := errors.Join(job.CheckTypeName(t.Name), job.CheckKey("worker type", string(t.Worker))); err != nil {
				return nil, err
			}
		}
		whole, _, err := schema.OfType(t)
		return whole, err
	})}
}

func newTypes(config Config) *types {
	t := &types{client: config.Client, syncer: schedules.New(config.Client)}
	for _, own := range config.Types {
		t.own = append(t.own, newJobType(own, false))
	}
	return t
}

// known are the job types that one request knows.
type known struct {
	types []jobType
	// incomplete says why there may be more.
	incomplete error
	// notes say what cannot be used, and why.
	notes []string
}

// find finds a type by its name, or by the job's id if that is "".
func (k *known) find(name, jobID string) (jobType, bool) {
	snake, _, _ := strings.Cut(jobID, ".")
	i := slices.IndexFunc(k.types, func(t jobType) bool {
		return name != "" && t.Name == name || name == "" && job.SnakeCase(t.Name) == snake
	})
	if i < 0 {
		return jobType{}, false
	}
	return k.types[i], true
}

// names are those of the known types.
func (k *known) names() []string {
	names := make([]string, len(k.types))
	for i, t := range k.types {
		names[i] = t.Name
	}
	return names
}

// lastApply is where the types of applied jobs are known from.
const lastApply = "the last apply"

// add adds an external type unless it is known, or cannot be used. It is served if the
// source is a live worker.
func (k *known) add(t job.Type, source string, served bool) {
	if _, ok := k.find(t.Name, ""); ok {
		return
	}
	made := newJobType(t, true)
	if _, err := made.schema(); err != nil {
		k.notes = append(k.notes, fmt.Sprintf("A job type of %s is invalid: %s.", source, oneLine(err)))
		return
	}
	if !served {
		made.keptFrom = source
	}
	k.types = append(k.types, made)
}

// all are the types of this program and those that workers announce, or that applied jobs
// had.
func (t *types) all(ctx context.Context) *known {
	k := &known{types: slices.Clone(t.own)}
	t.addAnnounced(ctx, k)
	for _, provider := range []job.Provider{job.ProviderTOML, job.ProviderAPI} {
		t.addApplied(ctx, k, provider)
	}
	return k
}

// forJobs are types that jobs need: others are looked for only if one is not known here.
func (t *types) forJobs(ctx context.Context, jobs []job.Job) *known {
	k := &known{types: t.own}
	for _, j := range jobs {
		if _, ok := k.find(j.Type, j.ID); !ok {
			return t.all(ctx)
		}
	}
	return k
}

// addAnnounced adds the types of workers: a live one comes before a lost one, and a later
// start before an earlier one.
func (t *types) addAnnounced(ctx context.Context, k *known) {
	ctx, cancel := context.WithTimeout(ctx, typesTimeout)
	defer cancel()
	services, err := t.client.Workers.Services(ctx, time.Now().Add(-lostTypesFor))
	if err != nil {
		k.incomplete = fmt.Errorf("list the job types of workers: %w", err)
	}
	if services.Unreadable != nil {
		k.notes = append(k.notes, fmt.Sprintf("A service is left out: %s.", oneLine(services.Unreadable)))
	}
	for _, some := range [][]client.LiveService{services.Live, services.Lost} {
		slices.SortStableFunc(some, func(a, b client.LiveService) int { return b.Started.Compare(a.Started) })
		for n := range some {
			for _, served := range some[n].Types {
				k.add(served.JobType(some[n].Worker), "service "+some[n].ID(), some[n].State != client.ServiceLost)
			}
		}
	}
}

// addApplied adds the types that apply has recorded with jobs.
func (t *types) addApplied(ctx context.Context, k *known, provider job.Provider) {
	ctx, cancel := context.WithTimeout(ctx, typesTimeout)
	defer cancel()
	applied, err := t.syncer.Applied(ctx, provider)
	if err != nil && k.incomplete == nil {
		k.incomplete = err
	}
	for _, name := range sortedKeys(applied.Types) {
		kept := applied.Types[name]
		k.add(kept.JobType(kept.Worker), lastApply, false)
	}
}

// externalOf are the external types of jobs, for apply to record.
func (k *known) externalOf(jobs []job.Job) map[string]contract.AppliedType {
	external := map[string]contract.AppliedType{}
	for _, j := range jobs {
		if t, ok := k.find(j.Type, ""); ok && t.external {
			external[t.Name] = contract.AppliedType{Worker: t.Worker, ServedType: contract.ServedType{
				Name: t.Name, Description: t.Description, Modes: t.Modes, SpecSchema: t.SpecSchema,
			}}
		}
	}
	return external
}
