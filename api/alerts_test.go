package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// alertsAndSilences silences the alert of a load that is left alone.
func alertsAndSilences(t *testing.T, w *world, key string, c *calledClients) {
	ctx := t.Context()
	location := "alerts-" + key
	pipelinetest.Hold(t, w.pipeline, location)
	const rule = jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN
	// awaitAlert waits until the alert is listed with a silence.
	awaitAlert := func(what string, silence string) *jobsv1.Alert {
		var found *jobsv1.Alert
		stacktest.WaitFor(t, what, func() (bool, error) {
			listed, err := c.Alerts.ListAlerts(ctx, &jobsv1.ListAlertsRequest{})
			at := slices.IndexFunc(listed.GetAlerts(), func(a *jobsv1.Alert) bool {
				return a.GetRule() == rule && strings.HasPrefix(a.GetObject(), location+"/")
			})
			if err != nil || at < 0 {
				return false, err
			}
			found = listed.GetAlerts()[at]
			return found.GetSilence() == silence, nil
		})
		return found
	}
	alert := awaitAlert("the alert", "")
	require.Equal(t, "breaker-open/"+alert.GetObject(), alert.GetName())
	require.NotNil(t, alert.GetFireTime())
	require.Equal(t, []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_SKIP_HELD_MESSAGE}, alert.GetActions())
	require.Contains(t, alert.GetText(), "it refuses the message")

	create := func(s *jobsv1.Silence) (*jobsv1.Silence, error) {
		response, err := c.Alerts.CreateSilence(ctx, &jobsv1.CreateSilenceRequest{Silence: s})
		return response.GetSilence(), err
	}
	end := timestamppb.New(time.Now().Add(time.Hour))
	for _, bad := range []*jobsv1.Silence{
		nil,
		{Rule: rule},
		{Rule: rule, EndTime: timestamppb.New(time.Now().Add(-time.Hour))},
		{Rule: rule, EndTime: timestamppb.New(time.Now().AddDate(1, 0, 0))},
		{Rule: rule, EndTime: end, Name: "mine"},
		{Rule: 999, EndTime: end},
	} {
		_, err := create(bad)
		requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
	}
	silence, err := create(&jobsv1.Silence{Rule: rule, Object: location + "/*", Reason: "a test", EndTime: end})
	require.NoError(t, err)
	require.NotEmpty(t, silence.GetName())
	require.Equal(t, rule, silence.GetRule())
	require.Equal(t, end.AsTime(), silence.GetEndTime().AsTime())
	require.NotEmpty(t, silence.GetCreator())
	silenced := awaitAlert("the silence of the alert", silence.GetName())
	require.Equal(t, silence.GetCreator(), silenced.GetSilencedBy())
	require.Equal(t, end.AsTime(), silenced.GetSilencedUntil().AsTime())

	listedSilence := func() *jobsv1.Silence {
		listed, err := c.Alerts.ListSilences(ctx, &jobsv1.ListSilencesRequest{})
		require.NoError(t, err)
		for _, s := range listed.GetSilences() {
			if s.GetName() == silence.GetName() {
				return s
			}
		}
		return nil
	}
	require.Equal(t, "a test", listedSilence().GetReason())
	_, err = c.Alerts.DeleteSilence(ctx, &jobsv1.DeleteSilenceRequest{Name: silence.GetName()})
	require.NoError(t, err)
	require.Nil(t, listedSilence())
	awaitAlert("the alert without a silence", "")
	_, err = c.Alerts.DeleteSilence(ctx, &jobsv1.DeleteSilenceRequest{Name: silence.GetName()})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
}
