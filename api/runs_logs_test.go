package api_test

import (
	"context"
	"log/slog"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/workers"
)

// A log is read from a level, by a text and from a place on. Where it has no line, a note says
// why.
func TestLogsOfRuns(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	nats, logger := st.Pipeline(t), slog.New(slog.DiscardHandler)
	logs := runlogs.Keep(context.Background(), nats, logger)
	t.Cleanup(logs.Close)
	talks := job.NewType("LogTalks", "talking", "Logs.", func(_ context.Context, run job.Run, _ struct{}) (job.Result, error) {
		run.Logger().Info("begins", "station", "Lower Meadow")
		run.Logger().Warn("odd <value>", "value", 12)
		run.Logger().Error("broken", "stack", "first\nsecond")
		return job.Result{Message: "done"}, nil
	})
	nothing := func(context.Context, job.Run, struct{}) (job.Result, error) { return job.Result{Message: "done"}, nil }
	calm := job.NewType("LogCalm", "talking", "Logs nothing.", nothing)
	silent := job.NewType("LogSilent", "silent", "Its worker keeps nothing.", nothing)
	away := job.NewType("LogAway", "away", "Has no worker.", nothing)
	workertest.Run(t, st, workers.Config{RunLogs: logs, Logger: logger, Worker: "talking", Types: []job.Type{talks, calm}})
	workertest.Run(t, st, workers.Config{Logger: logger, Worker: "silent", Types: []job.Type{silent}})
	server := api.New(api.Config{Client: c, Pipeline: nats, Logger: logger, Types: []job.Type{talks, calm, silent, away}})
	t.Cleanup(server.Close)
	clients := server.InProcess()
	stacktest.WaitFor(t, "both workers to be announced", func() (bool, error) {
		listed, err := clients.Workers.ListWorkers(t.Context(), &jobsv1.ListWorkersRequest{})
		return len(listed.GetWorkers()) == 2, err
	})

	run := func(id string, ends bool) string {
		made, err := clients.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Job: &jobsv1.Job{
			Id: id, Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}, Spec: &structpb.Struct{},
		}})
		require.NoError(t, err)
		if ends {
			stacktest.WaitFor(t, id+" to end", func() (bool, error) {
				answer, err := clients.Runs.GetRun(t.Context(), &jobsv1.GetRunRequest{Name: made.GetRunName()})
				return answer.GetRun().GetEndTime() != nil, err
			})
		}
		return made.GetRunName()
	}
	list := func(name, level, search string) (messages []string, note string) {
		answer, err := clients.Runs.ListRunLogs(t.Context(), &jobsv1.ListRunLogsRequest{Name: name, Level: level, Search: search})
		require.NoError(t, err)
		for _, line := range answer.GetLines() {
			messages = append(messages, line.GetMessage())
		}
		return messages, answer.GetNote()
	}
	told := run("log_talks.a", true)
	all := []string{"attempt began", "begins", "odd <value>", "broken", "attempt ended"}
	stacktest.WaitFor(t, "the last line", func() (bool, error) {
		lines, _ := list(told, "", "")
		return len(lines) == len(all), nil
	})
	for _, c := range []struct {
		level, search string
		want          []string
		note          string
	}{
		{"", "", all, ""},
		{"DEBUG", "", all, ""},
		{"WARN", "", []string{"odd <value>", "broken"}, ""},
		{"ERROR", "", []string{"broken"}, ""},
		{"", "lower MEADOW", []string{"begins"}, ""},
		{"", "value=12", []string{"odd <value>"}, ""},
		{"", "second", []string{"broken"}, ""},
		{"ERROR", "meadow", nil, "None of its 5 lines fits."},
		{"", "log_talks", nil, "None of its 5 lines fits."},
	} {
		lines, note := list(told, c.level, c.search)
		require.Equal(t, c.want, lines, "%s %q", c.level, c.search)
		require.Equal(t, c.note, note, "%s %q", c.level, c.search)
	}
	whole, err := clients.Runs.ListRunLogs(t.Context(), &jobsv1.ListRunLogsRequest{Name: told})
	require.NoError(t, err)
	stream, err := clients.Runs.WatchRunLogs(t.Context(), &jobsv1.WatchRunLogsRequest{Name: told, Level: "WARN", After: whole.GetLines()[2].GetSequence()})
	after := drain(t, stream, err)
	require.Len(t, after, 1)
	require.Equal(t, "broken", after[0].GetLine().GetMessage())
	_, err = clients.Runs.ListRunLogs(t.Context(), &jobsv1.ListRunLogsRequest{Name: told, Level: "LOUD"})
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))

	quiet := run("log_calm.a", true)
	stacktest.WaitFor(t, "the lines of the worker", func() (bool, error) {
		lines, note := list(quiet, "", "")
		return len(lines) == 2 && note == "The handler logged nothing: these lines are its worker's.", nil
	})
	_, note := list(run("log_silent.a", true), "", "")
	require.Regexp(t, `^Its worker \S+ keeps no logs: DENDRA_NATS_URL is not set there\.$`, note)
	_, note = list(run("log_away.a", false), "", "")
	require.Equal(t, "No worker has taken the run yet.", note)
}
