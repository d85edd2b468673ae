package client_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// TestStatusOfAJob has, for each pair of neighbors among the rules, facts that both of them
// fit: the first one decides.
func TestStatusOfAJob(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	before, soon, late := now.Add(-time.Minute), now.Add(time.Minute), now.Add(time.Hour)
	failing := &contract.Failing{Failing: true, Failures: 2, Class: "Told", NextRun: late}
	blocked := &contract.Failing{Failing: true, Class: errclass.TeardownBlocked}
	ref := client.RunRef{WorkflowID: "job/a-1", RunID: "1"}
	on := func() *client.ScheduleFacts {
		return &client.ScheduleFacts{LastStart: before, LastRun: ref, Next: []time.Time{soon, late}}
	}
	off := func() *client.ScheduleFacts {
		s := on()
		s.Paused, s.PauseReason = true, "disk"
		return s
	}
	run := &client.RunFacts{RunRef: ref, Started: before.Add(time.Millisecond)}
	retry := &client.RunFacts{RunRef: client.RunRef{WorkflowID: "job/a-0", RunID: "2"}, Started: now}
	own := func(mode job.Mode, status client.RunStatus, change ...func(*client.OwnFacts)) *client.OwnFacts {
		o := &client.OwnFacts{Run: client.Run{Mode: mode, Status: status, Started: before}}
		if !status.Open() {
			o.Ended, o.Class, o.Error = now, "Told", "to fail"
		}
		for _, c := range change {
			c(o)
		}
		return o
	}
	pause := func(o *client.OwnFacts) { o.Pause = contract.Pause{Paused: true, Reason: "disk"} }
	deleted := func(o *client.OwnFacts) { o.Stopped = contract.Stopped{Reason: "gone", Deleted: true} }
	stopped := func(o *client.OwnFacts) { o.Stopped = contract.Stopped{Reason: "by me"} }
	ahead := func(o *client.OwnFacts) { o.Started = soon }
	untold := func(o *client.OwnFacts) { o.Class, o.Error = "", "" }
	waits, cancels := &client.Look{WaitReason: "no worker"}, &client.Look{Canceling: true, WaitReason: "no worker"}
	taken := &client.Look{Taken: true, Progresses: true}
	const once, queued, loops = job.ModeOneShot, job.ModeQueued, job.ModeContinuous
	type row = client.JobRow
	reasons := map[string]string{
		"recurring, nobody can take its run": "nobody", "recurring, somebody looked, and nobody can take its run": "nobody",
		"recurring, waits": "no worker", "recurring, canceling": "no worker", "recurring, failing, its run waits": "Told",
		"recurring, failing though its run progresses": "Told", "recurring, paused, failing, its run waits": "disk",
		"continuous, waits": "no worker", "continuous, failing": "Told", "continuous, paused": "disk", "continuous, stopped while paused": "by me",
		"continuous, deleted": "gone", "one-shot, blocked": errclass.TeardownBlocked, "one-shot, canceling": "no worker",
		"one-shot, failed": "Told: to fail", "one-shot, timed out": "the run timed out",
	}
	idle := []string{ // No run is under way.
		"scheduled", "scheduled, the run has ended since", "recurring, failing, nothing is held back", "recurring, whatever was before and waits",
		"continuous, paused", "continuous, stopped while paused", "continuous, canceled", "continuous, deleted", "one-shot, its time is ahead",
		"one-shot, completed", "one-shot, failed", "one-shot, timed out", "one-shot, terminated", "one-shot, canceled", "queued, its turn is ahead", "queued, again",
	}
	for name, tc := range map[string]struct {
		facts client.Facts
		want  row
	}{
		"scheduled": {client.Facts{Schedule: on()}, row{Status: client.JobScheduled, LastStart: before, Next: soon}},
		"scheduled, the run has ended since": {client.Facts{Schedule: on(), Run: run, Look: &client.Look{Ended: true, WaitReason: "x"}},
			row{Status: client.JobScheduled, LastStart: before, Next: soon}},
		"recurring, running":      {client.Facts{Schedule: on(), Run: run}, row{Status: client.JobRunning, LastStart: before, Next: soon}},
		"recurring, a retry runs": {client.Facts{Schedule: on(), Run: retry}, row{Status: client.JobRunning, LastStart: now, Next: soon}},
		"recurring, nobody can take its run": {client.Facts{Schedule: on(), Run: run, Unserved: "nobody"},
			row{Status: client.JobWaiting, LastStart: before, Next: soon, WaitReason: "nobody"}},
		"recurring, somebody looked, and nobody can take its run": {client.Facts{Schedule: on(), Run: run, Look: waits, Unserved: "nobody"},
			row{Status: client.JobWaiting, LastStart: before, Next: soon, WaitReason: "nobody"}},
		"recurring, somebody has taken its run": {client.Facts{Schedule: on(), Run: run, Look: taken, Unserved: "nobody"},
			row{Status: client.JobRunning, LastStart: before, Next: soon}},
		"recurring, waits": {client.Facts{Schedule: on(), Run: run, Look: waits}, row{Status: client.JobWaiting, LastStart: before, Next: soon, WaitReason: "no worker"}},
		"recurring, canceling": {client.Facts{Schedule: on(), Run: run, Look: cancels},
			row{Status: client.JobCanceling, LastStart: before, Next: soon, WaitReason: "no worker"}},
		"recurring, failing, its run waits": {client.Facts{Schedule: on(), Run: run, Failing: failing, Look: cancels},
			row{Status: client.JobFailing, LastStart: before, Next: late, Failing: failing, WaitReason: "no worker"}},
		"recurring, failing, nothing is held back": {client.Facts{Schedule: on(), Failing: &contract.Failing{Failures: 1}},
			row{Status: client.JobFailing, LastStart: before, Next: soon, Failing: &contract.Failing{Failures: 1, NextRun: soon}}},
		"recurring, failing though its run progresses": {client.Facts{Schedule: on(), Run: run, Failing: failing, Look: &client.Look{Progresses: true}},
			row{Status: client.JobFailing, LastStart: before, Next: late, Failing: failing}},
		"recurring, paused, failing, its run waits": {client.Facts{Schedule: off(), Run: run, Failing: failing, Look: waits},
			row{Status: client.JobPaused, LastStart: before, PauseReason: "disk", Failing: &contract.Failing{Failing: true, Failures: 2, Class: "Told"}, WaitReason: "no worker"}},
		"recurring, whatever was before and waits": {client.Facts{Schedule: on(), Own: own(once, client.RunFailed), Waits: true},
			row{Status: client.JobScheduled, LastStart: before, Next: soon}},

		"continuous, running": {client.Facts{Own: own(loops, client.RunRunning)}, row{Status: client.JobRunning, LastStart: before}},
		"continuous, waits":   {client.Facts{Own: own(loops, client.RunRunning), Look: waits}, row{Status: client.JobWaiting, LastStart: before, WaitReason: "no worker"}},
		"continuous, failing": {client.Facts{Own: own(loops, client.RunRunning), Failing: failing, Look: waits},
			row{Status: client.JobFailing, LastStart: before, Next: late, Failing: failing, WaitReason: "no worker"}},
		"continuous, progresses": {client.Facts{Own: own(loops, client.RunRunning), Failing: failing, Look: &client.Look{Progresses: true}},
			row{Status: client.JobRunning, LastStart: before}},
		"continuous, paused": {client.Facts{Own: own(loops, client.RunRunning, pause), Failing: failing, Unserved: "nobody"},
			row{Status: client.JobPaused, LastStart: before, PauseReason: "disk", Failing: &contract.Failing{Failing: true, Failures: 2, Class: "Told"}}},
		"continuous, stopped while paused": {client.Facts{Own: own(loops, client.RunCompleted, pause, stopped), Failing: failing},
			row{Status: client.JobStopped, LastStart: before, Ended: now, StopReason: "by me"}},
		"continuous, canceled": {client.Facts{Own: own(loops, client.RunCanceled)}, row{Status: client.JobStopped, LastStart: before, Ended: now}},
		"continuous, deleted":  {client.Facts{Own: own(loops, client.RunCompleted, deleted)}, row{Status: client.JobDeleted, LastStart: before, Ended: now, StopReason: "gone"}},

		"one-shot, blocked": {client.Facts{Own: own(once, client.RunRunning), Look: &client.Look{Blocked: blocked}},
			row{Status: client.JobFailing, LastStart: before, Failing: blocked}},
		"one-shot, canceling":         {client.Facts{Own: own(once, client.RunRunning), Look: cancels}, row{Status: client.JobCanceling, LastStart: before, WaitReason: "no worker"}},
		"one-shot, its time is ahead": {client.Facts{Own: own(once, client.RunRunning, ahead), Unserved: "nobody", Look: cancels}, row{Status: client.JobWaiting, Next: soon}},
		"one-shot, completed":         {client.Facts{Own: own(once, client.RunCompleted)}, row{Status: client.JobCompleted, LastStart: before, Ended: now}},
		"one-shot, failed":            {client.Facts{Own: own(once, client.RunFailed)}, row{Status: client.JobFailed, LastStart: before, Ended: now, Class: "Told", Error: "to fail"}},
		"one-shot, timed out": {client.Facts{Own: own(once, client.RunTimedOut, untold)},
			row{Status: client.JobFailed, LastStart: before, Ended: now, Error: "the run timed out"}},
		"one-shot, terminated": {client.Facts{Own: own(once, client.RunTerminated)}, row{Status: client.JobTerminated, LastStart: before, Ended: now}},
		"one-shot, canceled":   {client.Facts{Own: own(once, client.RunCanceled)}, row{Status: client.JobStopped, LastStart: before, Ended: now}},

		"queued, its turn is ahead": {client.Facts{Waits: true}, row{Status: client.JobWaiting}},
		"queued, again":             {client.Facts{Waits: true, Own: own(queued, client.RunFailed)}, row{Status: client.JobWaiting}},
		"queued, a repeat waits":    {client.Facts{Waits: true, Own: own(queued, client.RunRunning)}, row{Status: client.JobRunning, LastStart: before}},
	} {
		got := tc.facts.Row(now)
		require.Equal(t, reasons[name], got.Reason, name)
		require.Equal(t, !slices.Contains(idle, name), got.UnderWay, name)
		got.Reason, got.UnderWay, got.LatestRun = "", false, ""
		require.Equal(t, tc.want, got, name)
	}
	require.Equal(t, late, failing.NextRun, "facts are shared")
}

// TestWhatTheLatestEndLeaves has runs of a recurring job.
func TestWhatTheLatestEndLeaves(t *testing.T) {
	t.Parallel()
	now := time.Now()
	failing := &contract.Failing{Failing: true}
	end := func(minute int, status client.RunStatus, retryOf string, left *contract.Failing) client.SeenRun {
		return client.SeenRun{
			Run:            client.Run{Mode: job.ModeRecurring, Status: status, RetryOf: retryOf},
			DefinitionHash: "hash", Opened: now.Add(time.Duration(minute) * time.Minute), Left: left,
		}
	}
	for name, tc := range map[string]struct {
		runs    []client.SeenRun
		failing bool
	}{
		"none":                     {nil, false},
		"one that failed":          {[]client.SeenRun{end(1, client.RunFailed, "", failing)}, true},
		"one that completed since": {[]client.SeenRun{end(2, client.RunCompleted, "", nil), end(1, client.RunFailed, "", failing)}, false},
		"one under way since":      {[]client.SeenRun{end(1, client.RunFailed, "", failing), end(2, client.RunRunning, "", nil)}, true},
		"one terminated since":     {[]client.SeenRun{end(1, client.RunFailed, "", failing), end(2, client.RunTerminated, "", nil)}, true},
		"one held back since":      {[]client.SeenRun{end(1, client.RunFailed, "", failing), end(2, client.RunHeldBack, "", failing)}, true},
		"a retry that completed":   {[]client.SeenRun{end(1, client.RunFailed, "", failing), end(2, client.RunCompleted, "x", nil)}, false},
		"a retry that failed":      {[]client.SeenRun{end(1, client.RunCompleted, "", nil), end(2, client.RunFailed, "x", failing)}, false},
	} {
		var latest client.LatestEnd
		for _, run := range tc.runs {
			latest.Take(run)
		}
		require.Equal(t, tc.failing, latest.Failing("hash") != nil, name)
		require.Nil(t, latest.Failing("another"), name)
	}
}
