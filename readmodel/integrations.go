package readmodel

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// readIntegrations asks the platform for its configs, and for the names of what they
// belong to.
func (r *Reader) readIntegrations(ctx context.Context) error {
	begin := time.Now()
	list, err := r.integrations(ctx)
	r.setHealth(platformServer, r.PlatformURL, err, time.Since(begin))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.integrations = list
	return nil
}

func (r *Reader) integrations(ctx context.Context) ([]*jobsv1.IntegrationOverview, error) {
	slugs := map[string]string{}
	err := platform.Pages(func(token string) (string, error) {
		page, err := r.Platform.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageToken: token})
		for _, o := range page.GetOrganizations() {
			slugs[o.GetId()] = o.GetSlug()
		}
		return page.GetNextPageToken(), err //nolint:wrapcheck // Explain does.
	})
	if err == nil {
		err = platform.Pages(func(token string) (string, error) {
			page, err := r.Platform.Metadata.ListStations(ctx, &platformv1.ListStationsRequest{PageToken: token})
			for _, s := range page.GetStations() {
				slugs[s.GetId()] = s.GetSlug()
			}
			return page.GetNextPageToken(), err //nolint:wrapcheck // Explain does.
		})
	}
	var list []*jobsv1.IntegrationOverview
	if err == nil {
		err = platform.Pages(func(token string) (string, error) {
			page, err := r.Platform.Integrations.ListIntegrationConfigs(ctx, &platformv1.ListIntegrationConfigsRequest{PageToken: token})
			for _, config := range page.GetIntegrationConfigs() {
				list = append(list, integrationMessage(config, slugs))
			}
			return page.GetNextPageToken(), err //nolint:wrapcheck // Explain does.
		})
	}
	slices.SortFunc(list, func(a, b *jobsv1.IntegrationOverview) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list, platform.Explain(err) //nolint:wrapcheck // It says what it did.
}

func integrationMessage(config *platformv1.IntegrationConfig, slugs map[string]string) *jobsv1.IntegrationOverview {
	name := func(id string) string {
		if slug := slugs[id]; slug != "" {
			return slug
		}
		return id
	}
	m := &jobsv1.IntegrationOverview{
		Name: config.GetId(), Type: config.GetTypeId(), State: IntegrationState(config), Version: config.GetVersion(),
		Organization: name(config.GetOrganizationId()), Station: name(config.GetStationId()),
	}
	switch m.GetState() {
	case jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED:
		degraded := platform.ConditionOf(config, orchestrate.ConditionDegraded)
		m.Reason, m.SinceTime = reasonOf(degraded), degraded.GetTransitionTime()
	case jobsv1.IntegrationState_INTEGRATION_STATE_NOT_READY:
		m.Reason, m.SinceTime = whyNotReady(config)
	}
	return m
}

// IntegrationState says whether the jobs of a config run. All that shows a config asks it.
func IntegrationState(config *platformv1.IntegrationConfig) jobsv1.IntegrationState {
	holds := func(condition string) bool {
		return platform.ConditionOf(config, condition).GetStatus() == platformv1.ConditionStatus_CONDITION_STATUS_TRUE
	}
	switch {
	case !config.GetEnabled():
		return jobsv1.IntegrationState_INTEGRATION_STATE_DISABLED
	case holds(orchestrate.ConditionDegraded):
		return jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED
	case holds(orchestrate.ConditionReady):
		return jobsv1.IntegrationState_INTEGRATION_STATE_READY
	}
	return jobsv1.IntegrationState_INTEGRATION_STATE_NOT_READY
}

// readyWithin is how long the jobs of an integration have to begin: it is not ready when it
// is made or changed, which takes seconds where nothing is wrong.
const readyWithin = time.Minute

// IntegrationFails reports whether somebody has to look at an integration: it is degraded, or
// has not been ready for [readyWithin].
func IntegrationFails(i *jobsv1.IntegrationOverview, now time.Time) bool {
	switch i.GetState() {
	case jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED:
		return true
	case jobsv1.IntegrationState_INTEGRATION_STATE_NOT_READY:
		return now.Sub(timeOrZero(i.GetSinceTime())) > readyWithin
	}
	return false
}

// whyNotReady says why a config is not ready, and since when, also before its orchestrator
// has said it.
func whyNotReady(config *platformv1.IntegrationConfig) (reason string, since *timestamppb.Timestamp) {
	scheduled, ready := platform.ConditionOf(config, orchestrate.ConditionScheduled), platform.ConditionOf(config, orchestrate.ConditionReady)
	switch {
	case scheduled.GetStatus() == platformv1.ConditionStatus_CONDITION_STATUS_FALSE:
		return reasonOf(scheduled), scheduled.GetTransitionTime()
	case ready != nil:
		return reasonOf(ready), ready.GetTransitionTime()
	case scheduled != nil:
		return "its orchestrator has not reported on its jobs yet", scheduled.GetTransitionTime()
	}
	return "no job of type ReconcileJobs has taken it up yet", config.GetModification().GetUpdateTime()
}

func reasonOf(c *platformv1.Condition) string {
	if c.GetMessage() == "" {
		return c.GetReason()
	}
	return c.GetReason() + ": " + c.GetMessage()
}
