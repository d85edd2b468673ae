package reconcile

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// OrchestratorSpec is the spec of jobs of [OrchestratorType].
type OrchestratorSpec struct {
	ConfigID string `json:"config_id" minLength:"1" help:"the integration config whose jobs it makes"`
}

// conditionType is the type of the condition that reconciliation writes.
const conditionType = "Scheduled"

const (
	// pageSize is how many configs are asked for at a time: an answer has at most 4 MiB.
	pageSize = 100
	// writeTries bounds how often a condition is written while others write theirs.
	writeTries = 5
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
	var configs []Config
	place := map[string]int{} // in configs
	err := platform.Pages(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := p.client.Integrations.ListIntegrationConfigs(ctx, &platformv1.ListIntegrationConfigsRequest{
			PageSize: pageSize, PageToken: token,
		})
		for _, c := range page.GetIntegrationConfigs() {
			place[c.GetId()] = len(configs)
			configs = append(configs, Config{ID: c.GetId(), Enabled: c.GetEnabled(), Condition: conditionOf(c.GetStatus())})
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, platform.Explain(err)
	}
	// Read after the configs: what was disabled in between is not registered.
	err = platform.Pages(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := p.client.Integrations.ListIntegrationJobRegistrations(ctx, &platformv1.ListIntegrationJobRegistrationsRequest{
			PageSize: pageSize, PageToken: token,
		})
		for _, r := range page.GetRegistrations() {
			at, known := place[r.GetConfigId()]
			if !known { // It was made in between.
				at = len(configs)
				place[r.GetConfigId()] = at
				configs = append(configs, Config{ID: r.GetConfigId(), Enabled: true})
			}
			configs[at].Job = orchestrator(r)
		}
		return page.GetNextPageToken(), err
	})
	return configs, platform.Explain(err)
}

// orchestrator is the job of a config for which a job is registered.
func orchestrator(r *platformv1.IntegrationJobRegistration) *job.Job {
	j := job.Job{
		ID: OrchestratorID(r.GetConfigId()), Type: OrchestratorType, Worker: job.WorkerBackend,
		Spec:    job.EncodeJSON(OrchestratorSpec{ConfigID: r.GetConfigId()}),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second), RestartOnChange: true}},
		Options: job.DefaultOptions(job.ModeContinuous),
	}
	j.Options.Description = "Jobs of integration config " + r.GetConfigId()
	j.Options.Owner.Organization = r.GetOrganizationSlug()
	return &j
}

// conditionOf is the condition that was written last.
func conditionOf(status *platformv1.IntegrationConfigStatus) Condition {
	for _, c := range status.GetConditions() {
		if c.GetType() == conditionType {
			return Condition{
				Scheduled: c.GetStatus() == platformv1.ConditionStatus_CONDITION_STATUS_TRUE,
				Reason:    Reason(c.GetReason()), Message: c.GetMessage(),
			}
		}
	}
	return Condition{}
}

// SetCondition implements [Source]. The conditions of others stay as they are.
func (p *Platform) SetCondition(ctx context.Context, config string, condition Condition) error {
	for try := 1; ; try++ {
		err := p.setCondition(ctx, config, condition)
		if connect.CodeOf(err) == connect.CodeNotFound {
			return nil // The config is gone.
		}
		if err == nil || connect.CodeOf(err) != connect.CodeAborted || try == writeTries {
			return platform.Explain(err)
		}
	}
}

func (p *Platform) setCondition(ctx context.Context, config string, condition Condition) error {
	ctx, cancel := context.WithTimeout(ctx, platform.Timeout)
	defer cancel()
	answer, err := p.client.Integrations.GetIntegrationConfig(ctx, &platformv1.GetIntegrationConfigRequest{Id: config})
	if err != nil {
		return err
	}
	now := answer.GetIntegrationConfig()
	status := &platformv1.IntegrationConfigStatus{
		ObservedVersion: now.GetStatus().GetObservedVersion(),
		Conditions: slices.DeleteFunc(slices.Clone(now.GetStatus().GetConditions()), func(c *platformv1.Condition) bool {
			return c.GetType() == conditionType
		}),
	}
	if len(status.GetConditions()) == 0 { // Otherwise the version is that of the others.
		status.ObservedVersion = now.GetVersion()
	}
	status.Conditions = append(status.Conditions, condition.message())
	_, err = p.client.Integrations.UpdateIntegrationConfigStatus(ctx, &platformv1.UpdateIntegrationConfigStatusRequest{
		ConfigId: config, Etag: now.GetEtag(), Status: status,
	})
	return err
}

func (c Condition) message() *platformv1.Condition {
	m := &platformv1.Condition{
		Type: conditionType, Status: platformv1.ConditionStatus_CONDITION_STATUS_FALSE, Reason: string(c.Reason), Message: c.Message,
	}
	if c.Scheduled {
		m.Status = platformv1.ConditionStatus_CONDITION_STATUS_TRUE
	}
	return m
}
