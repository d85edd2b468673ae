package job_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestValidate(t *testing.T) {
	require.Empty(t, recurring().Validate())

	for want, change := range map[string]func(*job.Job){
		`job type "hobo": a name is in CamelCase, of letters and digits, at most 64 characters`: func(j *job.Job) {
			j.Type, j.ID = "hobo", "hobo.north"
		},
		`job id "north" is not of the form extract_hobo_time_frame.KEY`: func(j *job.Job) { j.ID = "north" },
		`job id "other.north" is not of the form extract_hobo_time_frame.KEY`: func(j *job.Job) {
			j.ID = "other.north"
		},
		`job key "North": a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', ` +
			`and has at most 64 characters`: func(j *job.Job) { j.ID = "extract_hobo_time_frame.North" },
		`no mode is set: give the job exactly one of one_shot, continuous, recurring, queued`: func(j *job.Job) {
			j.Schedule = job.Schedule{}
		},
		`2 modes are set (one_shot, recurring): a job has exactly one`: func(j *job.Job) { j.OneShot = &job.OneShot{} },
		`recurring: no time is set: give it exactly one of recur_every, at least PT1S, and cron`: func(j *job.Job) {
			j.Recurring = &job.Recurring{}
		},
		`continuous.interval: PT0S is shorter than PT0.01S, the least that is possible`: func(j *job.Job) {
			j.Schedule = job.Schedule{Continuous: &job.Continuous{}}
		},
		`queued.on_failure: "stop" is not one of continue, halt`: func(j *job.Job) {
			j.Schedule = job.Schedule{Queued: &job.Queued{Queue: "q", OnFailure: "stop"}}
		},
		`queued.queue: queue "": a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', ` +
			`and has at most 64 characters`: func(j *job.Job) { j.Schedule = job.Schedule{Queued: &job.Queued{}} },
		`run_timeout: PT0S is not longer than zero`: func(j *job.Job) { j.Options.RunTimeout = 0 },
		`heartbeat_timeout: PT0.000000001S is shorter than PT1S, the least that is possible`: func(j *job.Job) {
			j.Options.HeartbeatTimeout = 1
		},
		`stop_grace_period: PT0S is not longer than zero`:                 func(j *job.Job) { j.Options.StopGracePeriod = 0 },
		`max_retry_count: -2 is less than -1, which means no limit`:       func(j *job.Job) { j.Options.MaxRetryCount = -2 },
		`retry_backoff.initial: PT0S is not longer than zero`:             func(j *job.Job) { j.Options.RetryBackoff.Initial = 0 },
		`retry_backoff.max: PT0.000000001S is shorter than initial, PT1S`: func(j *job.Job) { j.Options.RetryBackoff.Max = 1 },
		`retry_backoff.coefficient: 0.5 is less than 1, so that waits would shrink`: func(j *job.Job) {
			j.Options.RetryBackoff.Coefficient = 0.5
		},
		`retry_backoff.coefficient: NaN is not a number to multiply by`: func(j *job.Job) {
			j.Options.RetryBackoff.Coefficient = math.NaN()
		},
		`owner: an owner is an organization or a user, not both`: func(j *job.Job) {
			j.Options.Owner = job.Owner{Organization: "a", User: "b"}
		},
		`spec: the spec has 16396 bytes, more than 16384: pass large data by reference`: func(j *job.Job) {
			j.Spec = json.RawMessage(`{"logger":"` + strings.Repeat("x", 16396-13) + `"}`)
		},
		`spec: the spec is not JSON`:          func(j *job.Job) { j.Spec = json.RawMessage(`{"a"`) },
		`spec: the spec is not a JSON object`: func(j *job.Job) { j.Spec = json.RawMessage(` []`) },
	} {
		j := recurring()
		change(&j)
		problems := j.Validate()
		require.Len(t, problems, 1, "%s: %v", want, problems)
		require.Equal(t, want, problems[0].String())
	}
}

func TestValidateListsAllProblems(t *testing.T) {
	require.Len(t, job.Job{}.Validate(), 9)
}
