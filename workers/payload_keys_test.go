package workers_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec/payloadcodectest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
	"github.com/dendrascience/dendra-jobs/starter/replay"
	"github.com/dendrascience/dendra-jobs/starter/servers"
	"github.com/dendrascience/dendra-jobs/workers"
)

// sayIt is the spec of a job that puts a text into all that it leaves.
type sayIt struct {
	Text string `json:"text"`
	Gate string `json:"gate,omitempty"`
	Fail bool   `json:"fail,omitempty"`
}

func say(ctx context.Context, run job.Run, spec sayIt) (job.Result, error) {
	run.Checkpoint(job.Progress{Done: 1, Message: spec.Text}, spec.Text)
	if stopped := workertest.Pass(ctx, run, spec.Gate); stopped != nil {
		return job.Result{}, stopped
	}
	if spec.Fail {
		return job.Result{}, job.Final("Refused", "the vendor refuses %s", spec.Text)
	}
	return job.Result{Message: spec.Text, Output: job.EncodeJSON(spec.Text)}, nil
}

// encrypted is a namespace whose clients and workers have payload keys.
type encrypted struct {
	*stacktest.Stack
	*testing.T
}

func (e encrypted) settings(keys ...string) temporalclient.Settings {
	s := e.Settings()
	s.Logger = slog.New(slog.DiscardHandler)
	if len(keys) > 0 {
		s.PayloadKeys = payloadcodectest.File(e.T, keys...)
	}
	return s
}

func (e encrypted) control(keys ...string) *client.Client {
	e.Helper()
	temporal, err := temporalclient.Dial(e.Context(), e.settings(keys...))
	require.NoError(e, err)
	e.Cleanup(temporal.Close)
	return client.New(temporal, e.Namespace)
}

func (e encrypted) worker(keys ...string) (stop func()) {
	e.Helper()
	return workertest.Run(e.T, e.Stack, workers.Config{
		Temporal: e.settings(keys...), Types: []job.Type{job.NewType("SayIt", "testing", "Puts its text into all that it leaves.", say)},
	})
}

// eachKept gives all that a client gets of runs and of a Schedule.
func (e encrypted) eachKept(c *client.Client, schedule string, look func(place string, content []byte)) {
	e.Helper()
	marshaled := func(place string, m proto.Message, err error) {
		require.NoError(e, err)
		content, err := proto.Marshal(m)
		require.NoError(e, err)
		look(place, content)
	}
	api := c.Temporal()
	page, err := api.ListWorkflow(e.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: e.Namespace})
	marshaled("list", page, err)
	require.Empty(e, page.GetNextPageToken())
	for _, info := range page.GetExecutions() {
		of := info.GetExecution()
		description, err := api.DescribeWorkflowExecution(e.Context(), of.GetWorkflowId(), of.GetRunId())
		marshaled("description of "+of.GetWorkflowId(), description, err)
		events := api.GetWorkflowHistory(e.Context(), of.GetWorkflowId(), of.GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			marshaled("history of "+of.GetWorkflowId(), event, err)
		}
	}
	described, err := api.WorkflowService().DescribeSchedule(e.Context(), &workflowservice.DescribeScheduleRequest{Namespace: e.Namespace, ScheduleId: schedule})
	marshaled("schedule", described, err)
}

// TestTemporalCannotReadWhatIsEncrypted has a text in specs, heartbeats, results and errors of
// one-shots, of a recurring job and of a queue. Keys are rotated while runs are open.
func TestTemporalCannotReadWhatIsEncrypted(t *testing.T) {
	t.Parallel()
	e := encrypted{stacktest.StartNamespace(t), t}
	text := stacktest.NewCanary(t, "crop")
	c, stop := e.control("older"), e.worker("older")
	gate := workertest.NewGate(t)
	begin := func(key string, spec sayIt) client.RunRef {
		spec.Text = text.Value
		return startRun(t, c, newJob(t, "SayIt", key, oneShot(), spec))
	}
	succeeds, fails, open := begin("succeeds", sayIt{}), begin("fails", sayIt{Fail: true}), begin("open", sayIt{Gate: gate})
	require.Equal(t, text.Value, requireCompleted(t, c, succeeds).Output.Message)
	require.Contains(t, follow(t, c, fails).Error, text.Value)
	recurring := newJob(t, "SayIt", "recurring", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(24 * time.Hour)}}, sayIt{Text: text.Value})
	syncer := schedules.New(c)
	plan, err := syncer.Plan(t.Context(), []job.Job{recurring}, schedules.PlanOptions{Provider: recurring.Provider})
	require.NoError(t, err)
	require.NoError(t, syncer.Apply(t.Context(), plan, func(schedules.Report) {}))
	triggered, err := c.Jobs.Trigger(t.Context(), recurring.ID)
	require.NoError(t, err)
	requireCompleted(t, c, triggered.Run)
	enqueue(t, c, newJob(t, "SayIt", "item1", queuedIn("encrypted"), sayIt{Text: text.Value, Gate: gate}),
		newJob(t, "SayIt", "item2", queuedIn("encrypted"), sayIt{Text: text.Value}))
	waitFirstStep(t, c, open)

	// A heartbeat is in the description of a run that goes on.
	raw := newControl(t, e.Stack)
	search := func(place string, content []byte) { require.Empty(t, text.In(content), place) }
	e.eachKept(raw, contract.ScheduleID(recurring.ID), search)

	stop()
	c, _ = e.control("newer", "older"), e.worker("newer", "older")
	workertest.Open(t, gate)
	require.Equal(t, text.Value, requireCompleted(t, c, open).Output.Message)
	require.NoError(t, c.Queues.AwaitEmpty(t.Context(), "encrypted", func(*client.Queue) {}))
	plan, err = schedules.New(c).Plan(t.Context(), []job.Job{recurring}, schedules.PlanOptions{Provider: recurring.Provider})
	require.NoError(t, err)
	require.True(t, plan.Empty(), "what is encrypted is compared as it is")

	var kept, readable []byte
	e.eachKept(raw, contract.ScheduleID(recurring.ID), func(place string, content []byte) {
		search(place, content)
		kept = append(kept, content...)
	})
	require.Contains(t, string(kept), "older")
	require.Contains(t, string(kept), "newer")
	e.eachKept(c, contract.ScheduleID(recurring.ID), func(_ string, content []byte) { readable = append(readable, content...) })
	require.NotEmpty(t, text.In(readable))
	report, err := replay.Run(t.Context(), replay.Options{Temporal: e.settings("newer", "older"), Since: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	require.Empty(t, report.Different)
	require.NotZero(t, report.Replayed[contract.RunJobType])

	workertest.WaitListed(t, c)
	var told []string
	for _, result := range servers.Check(t.Context(), servers.Site{
		Temporal: e.settings("newest", "newer", "older"), Getenv: func(string) string { return "" }, Only: []string{"temporal", "workers"},
	}) {
		if result.Check == "payload keys" {
			told = append(told, string(result.State)+" "+result.Found)
		}
	}
	require.Greater(t, len(told), 1)
	require.Contains(t, told[0], "ok newest encrypts; keys in ")
	require.Regexp(t, "^wrong testing.* does not have the key newest", told[1])

	for says, keys := range map[string][]string{
		`"older" encrypted, and DENDRA_PAYLOAD_KEYS is not set`: nil, `"newer" encrypted, and it is not in `: {"older"},
	} {
		_, err = e.control(keys...).Runs.Get(t.Context(), open)
		require.ErrorContains(t, err, says)
	}
}

// TestBackupCheckOfEncryptedJobs: the check of a backup reads the load jobs, with the keys, to
// find the InfluxDB servers. Without the keys it says which one is missing.
func TestBackupCheckOfEncryptedJobs(t *testing.T) {
	t.Parallel()
	e := encrypted{stacktest.StartNamespace(t), t}
	loader := newJob(t, "LiveLoadInfluxV1", "kept", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, map[string]string{"location": "kept", "influx_url": e.Influx})
	c := e.control("older")
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), loader))
	rowOf(t, c, loader.ID, func(row client.JobRow) bool { return row.ID == loader.ID })
	check := func(keys string) map[string]string {
		t.Helper()
		s := e.Settings()
		s.PayloadKeys = keys
		results, err := servers.CheckBackup(t.Context(), servers.Site{
			Temporal: s, Getenv: func(string) string { return "" }, Only: []string{"temporal", "influx"},
		}, servers.Backup{Folder: t.TempDir(), MaxAge: time.Hour})
		require.NoError(t, err)
		found := map[string]string{}
		for _, r := range results {
			found[r.Part+" "+r.Check] = string(r.State) + " " + r.Found
		}
		return found
	}
	file := payloadcodectest.File(t, "newer", "older")
	found := check(file)
	require.Equal(t, "ok newer encrypts; keys in "+file+": 2", found["temporal payload keys"])
	require.NotContains(t, found, "influx jobs")
	require.Contains(t, found, "influx kept/default", "the server that the job names")
	require.Contains(t, check("")["influx jobs"], `"older" encrypted, and DENDRA_PAYLOAD_KEYS is not set`)
	require.Contains(t, check(payloadcodectest.File(t, "newer"))["influx jobs"], `"older" encrypted, and it is not in `)
	require.NoError(t, os.Chmod(file, 0o644)) //nolint:gosec // That is what is wrong.
	require.Regexp(t, "^wrong .*has mode 0644", check(file)["temporal payload keys"])
}
