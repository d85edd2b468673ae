package top

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/verbs"
	"github.com/dendrascience/dendra-jobs/verbs/verbstest"
)

func TestAKeyDoesSomethingWhereItsVerbApplies(t *testing.T) {
	t.Parallel()
	for _, state := range verbstest.Jobs(t) {
		requireKeys(t, paneJobs, jobRow(state.Overview, clock{}), state)
	}
	for _, state := range verbstest.Queues(t) {
		requireKeys(t, paneQueues, queueRow(state.Queue, clock{}), state)
	}
}

// requireKeys requires that each key does the one of its verbs that applies to a row.
func requireKeys(t *testing.T, p pane, r row, state verbstest.State) {
	t.Helper()
	for key, some := range keys[p] {
		var applies *verbs.Verb
		for _, v := range some {
			if applies == nil && state.Applies(v) {
				applies = v
			}
		}
		asked := keyAction(key, p, r)
		if applies == nil {
			require.Nil(t, asked, "%s of a %s", key, state.Name)
			require.Greater(t, len(whyNot(key, p, r)), len(r.name+": "), "%s of a %s", key, state.Name)
			continue
		}
		require.Same(t, applies, asked.verb, "%s of a %s", key, state.Name)
		require.Equal(t, verbs.To(r.name), asked.args)
	}
}

// An alert offers what helps, but for what needs times.
func TestAnAlertOffersTheVerbOfItsAction(t *testing.T) {
	t.Parallel()
	for number, name := range jobsv1.AlertAction_name {
		action := jobsv1.AlertAction(number)
		r := alertRow(readmodel.AlertGroup{Alert: &jobsv1.Alert{Object: "a/live/default", Actions: []jobsv1.AlertAction{action}}}, clock{})
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
