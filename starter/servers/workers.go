package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec"
	"github.com/dendrascience/dendra-jobs/job"
)

// control is the client of jobs, nil if the namespace cannot hold any.
func (l *look) control() *client.Client {
	if l.client == nil || l.namespace.Name == "" || len(l.namespace.MissingAttributes()) > 0 {
		return nil
	}
	return client.New(l.client, l.namespace.Name)
}

// workers looks for live workers, and for job types that nobody serves.
func (l *look) workers(ctx context.Context) []Result {
	c := l.control()
	if c == nil {
		return []Result{unset("services", "not known without Temporal and its search attributes")}
	}
	w, err := c.Workers.List(ctx)
	switch {
	case errors.Is(err, client.ErrNoServices):
		return []Result{unset("services", "not known on this Temporal: it has no services")}
	case err != nil:
		return []Result{wrong("services", err.Error(), "look at the server's log")}
	}
	var ids []string
	for n := range w.Services {
		ids = append(ids, w.Services[n].ID())
	}
	results := []Result{ok("services", strings.Join(ids, ", "))}
	if len(ids) == 0 {
		results[0] = wrong("services", "no worker lives", "start the workers backend, extract and load")
	}
	for n := range w.Services {
		if s := &w.Services[n]; s.AllStuck() {
			results = append(results, wrong("handlers", "handlers that did not stop hold all slots of "+s.ID(), "restart it"))
		}
		if s := &w.Services[n]; len(l.keys) > 0 && !slices.Contains(s.PayloadKeys, l.keys[0]) {
			results = append(results, wrong(payloadKeys, fmt.Sprintf("%s does not have the key %s, by which this program encrypts", s.ID(), l.keys[0]),
				"give it the file of "+payloadcodec.EnvKeys+", and restart it"))
		}
	}
	for n := range w.Services {
		if s := &w.Services[n]; s.Tags[job.TagImages] != "" {
			results = append(results, ok("images", s.ID()+" makes images by "+s.Tags[job.TagImages]))
		}
	}
	for _, u := range w.Unserved {
		results = append(results, wrong("job types", fmt.Sprintf("no live worker serves %s (jobs: %d)", u.Type, u.Jobs), "start a worker that has it"))
	}
	for _, u := range w.UnservedTags {
		results = append(results, wrong("job types", fmt.Sprintf("no live worker that serves %s has the tags %s (jobs: %d)", u.Type, job.TagsText(u.Tags), u.Jobs),
			"start a worker with these tags, or change bind"))
	}
	if len(w.Unserved)+len(w.UnservedTags) == 0 {
		results = append(results, ok("job types", "all that jobs have are served"))
	}
	return append(results, builds(ctx, c, w.Services)...)
}

// builds looks at the builds of the live workers: those of a program that differ and are not
// versioned, and deployments that somebody has to look after.
func builds(ctx context.Context, c *client.Client, services []client.LiveService) []Result {
	revisions, deployments := map[string]map[string]bool{}, map[string]bool{}
	for n := range services {
		s := &services[n]
		switch {
		case s.Deployment != "":
			deployments[s.Deployment] = true
		case s.Build.Revision != "":
			if revisions[s.Build.Module] == nil {
				revisions[s.Build.Module] = map[string]bool{}
			}
			revisions[s.Build.Module][s.Build.Revision] = true
		}
	}
	var results []Result
	for _, module := range slices.Sorted(maps.Keys(revisions)) {
		if of := slices.Sorted(maps.Keys(revisions[module])); len(of) > 1 {
			results = append(results, wrong("builds", "workers of "+module+" serve that were built from "+strings.Join(of, " and ")+", and are not versioned",
				"stop the old ones, or set TEMPORAL_DEPLOYMENT_NAME for all"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(deployments)) {
		d, err := c.Deployments.Get(ctx, name)
		if err != nil {
			results = append(results, wrong("builds", err.Error(), "look at the server's log"))
			continue
		}
		for _, f := range d.Findings() {
			results = append(results, wrong("builds", f.Found, f.Do))
		}
	}
	if len(results) == 0 && len(services) > 0 {
		results = append(results, ok("builds", "those that serve fit together"))
	}
	return results
}
