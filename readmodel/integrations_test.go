package readmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestWhyAnIntegrationFails: the reason, and since when, are known before its orchestrator has
// said any.
func TestWhyAnIntegrationFails(t *testing.T) {
	t.Parallel()
	is, not := platformv1.ConditionStatus_CONDITION_STATUS_TRUE, platformv1.ConditionStatus_CONDITION_STATUS_FALSE
	at := func(hour int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC))
	}
	condition := func(name string, status platformv1.ConditionStatus, hour int, reason, message string) *platformv1.Condition {
		return &platformv1.Condition{Type: name, Status: status, Reason: reason, Message: message, TransitionTime: at(hour)}
	}
	for want, c := range map[string]struct {
		since      int
		conditions []*platformv1.Condition
	}{
		"no job of type ReconcileJobs has taken it up yet":  {1, nil},
		"its orchestrator has not reported on its jobs yet": {2, []*platformv1.Condition{condition("Scheduled", is, 2, "Applied", "")}},
		"NothingRegistered: it has no job":                  {2, []*platformv1.Condition{condition("Scheduled", not, 2, "NothingRegistered", "it has no job")}},
		"Blocked: a job of provider toml has its id": {2, []*platformv1.Condition{
			condition("Scheduled", not, 2, "Blocked", "a job of provider toml has its id"), condition("Ready", not, 3, "JobMissing", "job a.b is not there"),
		}},
		"WaitingForStations: ExtractTest waits for stations: there is none yet": {3, []*platformv1.Condition{
			condition("Scheduled", is, 2, "Applied", ""), condition("Ready", not, 3, "WaitingForStations", "ExtractTest waits for stations: there is none yet"),
		}},
		"VendorUnreachable": {4, []*platformv1.Condition{condition("Degraded", is, 4, "VendorUnreachable", ""), condition("Ready", not, 3, "JobMissing", "")}},
	} {
		config := &platformv1.IntegrationConfig{
			Enabled: true, Modification: &platformv1.Modification{UpdateTime: at(1)}, Status: &platformv1.IntegrationConfigStatus{Conditions: c.conditions},
		}
		message := readmodel.IntegrationMessage(config, nil)
		require.Equal(t, want, message.GetReason())
		require.Equal(t, at(c.since).AsTime(), message.GetSinceTime().AsTime(), want)
	}
}
