package readmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestWhyAnIntegrationIsNotReady: the reason is known before its orchestrator has said any.
func TestWhyAnIntegrationIsNotReady(t *testing.T) {
	t.Parallel()
	is, not := platformv1.ConditionStatus_CONDITION_STATUS_TRUE, platformv1.ConditionStatus_CONDITION_STATUS_FALSE
	condition := func(name string, status platformv1.ConditionStatus, reason, message string) *platformv1.Condition {
		return &platformv1.Condition{Type: name, Status: status, Reason: reason, Message: message}
	}
	for want, conditions := range map[string][]*platformv1.Condition{
		"no job of type ReconcileJobs has taken it up yet":                      nil,
		"its orchestrator has not reported on its jobs yet":                     {condition("Scheduled", is, "Applied", "")},
		"NothingRegistered: it has no job":                                      {condition("Scheduled", not, "NothingRegistered", "it has no job")},
		"Blocked: a job of provider toml has its id":                            {condition("Scheduled", not, "Blocked", "a job of provider toml has its id"), condition("Ready", not, "JobMissing", "job a.b is not there")},
		"WaitingForStations: ExtractTest waits for stations: there is none yet": {condition("Scheduled", is, "Applied", ""), condition("Ready", not, "WaitingForStations", "ExtractTest waits for stations: there is none yet")},
	} {
		config := &platformv1.IntegrationConfig{Status: &platformv1.IntegrationConfigStatus{Conditions: conditions}}
		require.Equal(t, want, readmodel.WhyNotReady(config))
	}
}
