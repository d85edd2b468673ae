package endtoend_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// TestFiguresOfConfigs measures on an idle stack how long a config takes from the answer of
// the API until its job runs, and until its job has ended: docs/benchmarks.md.
func TestFiguresOfConfigs(t *testing.T) {
	t.Parallel()
	count, _ := strconv.Atoi(os.Getenv("DENDRA_FIGURES_CONFIGS"))
	if count == 0 || testing.Short() {
		t.Skip("DENDRA_FIGURES_CONFIGS says how many configs to measure")
	}
	c := newChaos(t, stacktest.Random(t))
	s := newStory(t, stacktest.StartOwn(t), c)
	for _, name := range []string{"backend", "extract", "load"} {
		s.worker(name)
	}
	s.declare()
	spec, err := structpb.NewStruct(map[string]any{
		"server": s.st.LDMP, "organization": "${organization_slug}", "start_option": "at-newest",
		"stations": []any{map[string]any{"station": "angelo", "utc_offset": "-08:00", "tables": []any{"OneMin"}}},
	})
	require.NoError(t, err)
	o := newOrganization(1, "org", "north", "21234001")
	require.NoError(t, s.users.put(t.Context(), o.resources("")[0], &platformv1.Resource{Resource: &platformv1.Resource_IntegrationType{
		IntegrationType: &platformv1.IntegrationType{
			Id: "loggers", Name: "Loggers", Direction: platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND,
			Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_ORGANIZATION,
			Jobs: []*platformv1.IntegrationJob{{JobType: "ExtractCampbellScientificLdmp", Spec: spec, Trigger: &platformv1.JobTrigger{
				Mode: &platformv1.JobTrigger_Continuous{Continuous: &platformv1.ContinuousMode{Interval: durationpb.New(time.Second)}},
			}}},
		},
	}}))
	var enabled, disabled []time.Duration
	for i := range count {
		config := fmt.Sprintf("config-%03d", i)
		require.NoError(t, s.users.put(t.Context(), &platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{
			IntegrationConfig: &platformv1.IntegrationConfig{
				Id: config, TypeId: "loggers", OrganizationId: o.id, Name: config, OperationMode: platformv1.OperationMode_OPERATION_MODE_LIVE,
			},
		}}))
		workflow := "job/extract_campbell_scientific_ldmp." + config
		_, err := s.users.Integrations.EnableIntegrationConfig(t.Context(), &platformv1.EnableIntegrationConfigRequest{Id: config})
		require.NoError(t, err)
		answered := time.Now()
		s.until("first iteration of "+config, func(ctx context.Context) (bool, error) {
			description, err := s.client.Temporal().DescribeWorkflowExecution(ctx, workflow, "")
			for _, activity := range description.GetPendingActivities() {
				if activity.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
					enabled = append(enabled, activity.GetLastStartedTime().AsTime().Sub(answered))
					return true, err
				}
			}
			return false, err
		})
		_, err = s.users.Integrations.DisableIntegrationConfig(t.Context(), &platformv1.DisableIntegrationConfigRequest{Id: config})
		require.NoError(t, err)
		answered = time.Now()
		s.until("end of the job of "+config, func(ctx context.Context) (bool, error) {
			description, err := s.client.Temporal().DescribeWorkflowExecution(ctx, workflow, "")
			ended := description.GetWorkflowExecutionInfo().GetCloseTime()
			if ended != nil {
				disabled = append(disabled, ended.AsTime().Sub(answered))
			}
			return ended != nil, err
		})
	}
	for name, took := range map[string]([]time.Duration){"enabled, to the first iteration": enabled, "disabled, to the end of the job": disabled} {
		slices.Sort(took)
		t.Logf("%d configs %s: p50 %s, p95 %s, most %s", count, name, took[count/2].Round(time.Millisecond),
			took[count*95/100].Round(time.Millisecond), took[count-1].Round(time.Millisecond))
	}
}
