package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	// pageSize is how many configs are asked for at a time: an answer has at most 4 MiB.
	pageSize = 100
	// checks is how many configs are checked at once.
	checks = 8
)

// Platform is the Platform API as a source. A config shall have an orchestrator if the
// platform registers jobs for it; which jobs these are is for the orchestrator.
type Platform struct {
	client *platform.Client
}

var _ Source = (*Platform)(nil)

// NewPlatform makes a source of the API.
func NewPlatform(client *platform.Client) *Platform { return &Platform{client: client} }

// Configs implements [Source].
func (p *Platform) Configs(ctx context.Context) ([]Config, error) {
	l := &listing{known: map[string]*platformv1.IntegrationConfig{}, registered: map[string][]*platformv1.IntegrationJobRegistration{}}
	err := platform.Pages(func(token string) (string, error) {
		page, err := p.client.Integrations.ListIntegrationConfigs(ctx, &platformv1.ListIntegrationConfigsRequest{
			PageSize: pageSize, PageToken: token,
		})
		for _, c := range page.GetIntegrationConfigs() {
			l.known[c.GetId()] = c
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, platform.Explain(err)
	}
	// Read after the configs: what was disabled in between is not registered.
	err = platform.Pages(func(token string) (string, error) {
		page, err := p.client.Integrations.ListIntegrationJobRegistrations(ctx, &platformv1.ListIntegrationJobRegistrationsRequest{
			PageSize: pageSize, PageToken: token,
		})
		for _, r := range page.GetRegistrations() {
			l.registered[r.GetConfigId()] = append(l.registered[r.GetConfigId()], r)
			if l.known[r.GetConfigId()] == nil { // It was made in between.
				l.known[r.GetConfigId()] = &platformv1.IntegrationConfig{Id: r.GetConfigId(), Enabled: true, Version: r.GetConfigVersion()}
			}
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, platform.Explain(err)
	}
	configs := l.configs()
	return configs, p.explain(ctx, l, configs)
}

// explain asks what is wrong with enabled configs that register no job.
func (p *Platform) explain(ctx context.Context, l *listing, configs []Config) error {
	group, ctx := job.NewGroup(ctx)
	group.SetLimit(checks)
	for i := range configs {
		c := &configs[i]
		if !c.Enabled || c.Job != nil {
			continue
		}
		group.Go(func() error {
			answer, err := p.client.Integrations.CheckIntegrationConfig(ctx, &platformv1.CheckIntegrationConfigRequest{IntegrationConfig: l.known[c.ID]})
			var findings []string
			for _, f := range answer.GetFindings() {
				findings = append(findings, f.GetField()+": "+f.GetMessage())
			}
			c.Findings = strings.Join(findings, "; ")
			return platform.Explain(err)
		})
	}
	return group.Wait()
}

// listing is everything that the platform lists.
type listing struct {
	known      map[string]*platformv1.IntegrationConfig
	registered map[string][]*platformv1.IntegrationJobRegistration
}

func (l *listing) configs() []Config {
	referring := map[string][]string{}
	ids := slices.Sorted(maps.Keys(l.known))
	for _, id := range ids {
		for _, other := range orchestrate.References(l.known[id]) {
			referring[other] = append(referring[other], id)
		}
	}
	configs := make([]Config, len(ids))
	for i, id := range ids {
		known := l.known[id]
		configs[i] = Config{ID: id, Version: known.GetVersion(), Enabled: known.GetEnabled(), Condition: conditionOf(known), Orchestrated: orchestrated(known)}
		if own := l.registered[id]; len(own) > 0 {
			configs[i].Job = orchestrator(own[0], l.revision(id, referring[id]))
		}
	}
	return configs
}

// revision changes with what the jobs of a config follow from: its registrations, those of
// configs that refer to it, and the job types of configs that it refers to. A status is no
// part of it.
func (l *listing) revision(id string, referring []string) string {
	hash := sha256.New()
	add := func(r *platformv1.IntegrationJobRegistration) {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err == nil { // It came as a message.
			_, _ = fmt.Fprintf(hash, "%d %s", len(text), text) // A hash takes everything.
		}
	}
	for _, r := range l.registered[id] {
		add(r)
	}
	for _, other := range referring {
		for _, r := range l.registered[other] {
			r = proto.CloneOf(r)
			r.ConfigVersion = 0 // What the jobs follow from is in the rest.
			add(r)
		}
	}
	for _, other := range orchestrate.References(l.known[id]) {
		for _, r := range l.registered[other] {
			add(&platformv1.IntegrationJobRegistration{ConfigId: other, JobType: r.GetJobType()})
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// orchestrator is the job of a config for which a job is registered.
func orchestrator(r *platformv1.IntegrationJobRegistration, revision string) *job.Job {
	j := job.Job{
		ID: OrchestratorID(r.GetConfigId()), Type: OrchestratorType, Worker: job.WorkerBackend,
		Spec:    job.EncodeJSON(OrchestratorSpec{ConfigID: r.GetConfigId(), Revision: revision}),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second), RestartOnChange: true}},
		Options: job.DefaultOptions(job.ModeContinuous),
	}
	j.Options.Description = "Jobs of integration config " + r.GetConfigId()
	j.Options.Owner.Organization = r.GetOrganizationSlug()
	return &j
}

// conditionOf is the condition that was written last.
func conditionOf(config *platformv1.IntegrationConfig) Condition {
	c := platform.ConditionOf(config, orchestrate.ConditionScheduled)
	return Condition{
		Scheduled: c.GetStatus() == platformv1.ConditionStatus_CONDITION_STATUS_TRUE,
		Reason:    Reason(c.GetReason()), Message: c.GetMessage(), Version: c.GetObservedVersion(),
	}
}

// orchestrated reports whether a config has conditions of its orchestrator.
func orchestrated(config *platformv1.IntegrationConfig) bool {
	return slices.ContainsFunc(orchestrate.ConditionTypes(), func(name string) bool {
		return platform.ConditionOf(config, name) != nil
	})
}

// SetCondition implements [Source]. Without an orchestrator its conditions go. Those of
// others stay as they are.
func (p *Platform) SetCondition(ctx context.Context, config string, condition Condition) error {
	change := platform.ConditionChange{Observed: condition.Version, Set: []platform.Condition{{
		Type: orchestrate.ConditionScheduled, Holds: condition.Scheduled, Reason: string(condition.Reason), Message: condition.Message,
	}}}
	if condition.gone() {
		change.Remove = orchestrate.ConditionTypes()
	}
	return p.client.WriteConditions(ctx, config, change)
}
