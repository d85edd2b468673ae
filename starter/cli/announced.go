package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/specschema"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// announcedTimeout is how long Temporal may take to tell the job types that live
// workers announce.
const announcedTimeout = 5 * time.Second

// announcedTypes lists the job types that live workers announce and this program
// was not built with. Of a type that several announce differently, the one that
// was started last has the say.
func (i *invocation) announcedTypes(ctx context.Context) ([]job.Type, error) {
	ctx, cancel := context.WithTimeout(ctx, announcedTimeout)
	defer cancel()
	c, err := i.connect(ctx)
	if err != nil {
		return nil, err
	}
	services, err := workflows.Services(ctx, c.Temporal())
	if err != nil {
		return nil, fmt.Errorf("the live workers cannot be asked: %w", err)
	}
	var types []job.Type
	started := map[string]time.Time{}
	at := map[string]int{}
	for n := range services {
		service := &services[n]
		for _, served := range service.Types {
			t := served.JobType(service.Worker)
			if _, own := findType(i.Types, t.Name); own {
				continue
			}
			if err := checkAnnounced(t); err != nil {
				i.note("Service %s announces what is no job type: %s.", service.ID(), clean(err.Error()))
				continue
			}
			earlier, seen := started[t.Name]
			switch {
			case !seen:
				at[t.Name] = len(types)
				types = append(types, t)
			case service.Started.After(earlier):
				types[at[t.Name]] = t
			default:
				continue
			}
			started[t.Name] = service.Started
		}
	}
	return types, nil
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
