package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// state is everything that is wanted and everything that is there, by config.
type state struct {
	at      time.Time
	configs map[string]*config
	mu      sync.Mutex // of what is told to the platform
}

// config is what is known of one integration config.
type config struct {
	Config
	// known says that the platform has it.
	known bool
	// live are the jobs of provider integration that the config has.
	live []job.Summary
	// owns says that its orchestrator has made jobs.
	owns bool
}

// read reads all configs and all jobs of integrations.
func (r *Reconciler) read(ctx context.Context) (*state, error) {
	s := &state{at: time.Now(), configs: map[string]*config{}}
	configs, err := r.source.Configs(ctx)
	if err != nil {
		return nil, fmt.Errorf("the configs of the platform cannot be read: %w", err)
	}
	for _, c := range configs {
		s.configs[c.ID] = &config{Config: c, known: true}
	}
	found, err := r.jobs.Find(ctx, job.Filter{Provider: job.ProviderIntegration})
	if err != nil {
		return nil, fmt.Errorf("the jobs of integrations cannot be listed: %w", err)
	}
	if len(configs) == 0 && len(found) > 0 && !r.AllowEmpty {
		return nil, job.Fail(errclass.NoConfigs,
			"the platform lists no config at all, and jobs of integrations are there (%d): nothing is changed; "+
				"if they are to go, run starter reconcile --allow-empty", len(found))
	}
	for _, f := range found {
		if id, ok := strings.CutPrefix(string(f.Provider), string(job.IntegrationProvider(""))); ok {
			s.config(id).owns = true
		} else if _, id, ok := strings.Cut(f.ID, "."); ok {
			c := s.config(id)
			c.live = append(c.live, f)
		}
	}
	if !r.AllowEmpty {
		err = s.checkRegistrations()
	}
	return s, err
}

func (s *state) config(id string) *config {
	if s.configs[id] == nil {
		s.configs[id] = &config{Config: Config{ID: id}}
	}
	return s.configs[id]
}

// recordCondition notes what the platform was told of a config.
func (s *state) recordCondition(c *config, condition Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Condition = condition
	c.Orchestrated = c.Orchestrated && !condition.gone()
}

// checkRegistrations refuses a platform that registers nothing at all, for configs that
// are enabled, that it finds nothing wrong with, and that have jobs.
func (s *state) checkRegistrations() error {
	var without []string
	for _, id := range slices.Sorted(maps.Keys(s.configs)) {
		c := s.configs[id]
		if c.Job != nil {
			return nil
		}
		if c.Enabled && c.Findings == "" && (c.owns || len(c.live) > 0) {
			without = append(without, id)
		}
	}
	if len(without) == 0 {
		return nil
	}
	return job.Fail(errclass.NoConfigs,
		"the platform registers no job at all, and finds nothing wrong with configs that have jobs (%d, such as %s): nothing is changed; "+
			"if the jobs are to go, run starter reconcile --allow-empty", len(without), without[0])
}

// enabled counts the configs that shall have a job.
func (s *state) enabled() int {
	n := 0
	for _, c := range s.configs {
		if c.Job != nil {
			n++
		}
	}
	return n
}

// differing are the configs that do not look as they should, in order.
func (s *state) differing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(s.configs)) {
		if !s.configs[id].inSync() {
			ids = append(ids, id)
		}
	}
	return ids
}

// inSync reports whether lists show the config as it should be, and that the platform knows.
func (c *config) inSync() bool {
	if problem := c.problem(); problem != "" {
		return c.Condition == c.invalid(problem)
	}
	if c.Job == nil {
		told := !c.known || !c.Enabled && c.Condition == (Condition{}) || c.Condition == c.applied(job.Applied{}, nil)
		return len(c.live) == 0 && !c.owns && !c.Orchestrated && told
	}
	wanted := *c.Job
	wanted.Provider = job.ProviderIntegration
	hash, err := wanted.DefinitionHash()
	return err == nil && len(c.live) == 1 && c.live[0].ID == wanted.ID && c.live[0].DefinitionHash == hash &&
		c.Condition == c.applied(job.Applied{}, nil)
}

// jobIDs are those of all jobs of provider integration that the config has or may have.
func (c *config) jobIDs() []string {
	ids := []string{OrchestratorID(c.ID)}
	for _, f := range c.live {
		if !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}
