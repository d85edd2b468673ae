package top

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func TestAKeyDoesSomethingWhereItsVerbApplies(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{verbs.OneShot, verbs.Recurring, verbs.Continuous, verbs.Queued} {
		for number, name := range jobsv1.JobStatus_name {
			j := &jobsv1.JobOverview{Id: "a.b", Mode: mode, Status: jobsv1.JobStatus(number)}
			requireKeys(t, paneJobs, jobRow(j, clock{}), verbs.OfOverview(j), mode+" job that is "+name)
		}
	}
	for number, name := range jobsv1.QueueStatus_name {
		for waiting := range int32(2) {
			q := &jobsv1.Queue{Name: "late", Status: jobsv1.QueueStatus(number), Waiting: waiting}
			requireKeys(t, paneQueues, queueRow(q, clock{}), verbs.OfQueue(q), "queue that is "+name)
		}
	}
}

// requireKeys requires that each key does the one of its verbs that applies to a row.
func requireKeys(t *testing.T, p pane, r row, of verbs.Subject, what string) {
	t.Helper()
	for key, some := range keys[p] {
		var applies *verbs.Verb
		for _, v := range some {
			if applies == nil && v.Applies(of) {
				applies = v
			}
		}
		asked := keyAction(key, p, r)
		if applies == nil {
			require.Nil(t, asked, "%s of a %s", key, what)
			require.Greater(t, len(whyNot(key, p, r)), len(r.name+": "), "%s of a %s", key, what)
			continue
		}
		require.Same(t, applies, asked.verb, "%s of a %s", key, what)
		require.Equal(t, verbs.To(r.name), asked.args)
	}
}

// An alert offers what helps, but for what needs times.
func TestAnAlertOffersTheVerbOfItsAction(t *testing.T) {
	t.Parallel()
	for number, name := range jobsv1.AlertAction_name {
		action := jobsv1.AlertAction(number)
		r := alertRow(&jobsv1.Alert{Object: "a/live/default", Actions: []jobsv1.AlertAction{action}}, clock{})
		asked, v := keyAction("enter", paneAlerts, r), verbs.OfAction(action)
		if v == nil || v.Times {
			require.Nil(t, asked, name)
			continue
		}
		require.Same(t, v, asked.verb, name)
		require.Contains(t, asked.question(), "a/live/default")
	}
}

// A question that is wider than the screen is shown to its end, and takes no line too many.
func TestALongQuestionIsShownToItsEnd(t *testing.T) {
	t.Parallel()
	m := &model{now: time.Now, place: time.UTC, width: 40, height: 12, shown: &jobsv1.Overview{}, asked: &action{verbs.StopJob, verbs.To("echo.job-001")}}
	lines := strings.Split(m.screen(), "\n")
	require.Len(t, lines, m.height)
	require.Contains(t, m.screen(), "Stop echo.job-001?")
	require.True(t, strings.HasSuffix(m.screen(), "y/n"), m.screen())
}
