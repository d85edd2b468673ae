package job_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestValidate(t *testing.T) {
	t.Parallel()
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
			j.Trigger = job.Trigger{}
		},
		`2 modes are set (one_shot, recurring): a job has exactly one`: func(j *job.Job) { j.OneShot = &job.OneShot{} },
		`recurring: no time is set: give it exactly one of recur_every, at least PT1S, and cron`: func(j *job.Job) {
			j.Recurring = &job.Recurring{}
		},
		`continuous.interval: PT0S is shorter than PT0.01S`: func(j *job.Job) {
			j.Trigger = job.Trigger{Continuous: &job.Continuous{}}
		},
		`queued.on_failure: "stop" is not one of continue, halt`: func(j *job.Job) {
			j.Trigger = job.Trigger{Queued: &job.Queued{Queue: "q", OnFailure: "stop"}}
		},
		`queued.queue: queue "": a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', ` +
			`and has at most 64 characters`: func(j *job.Job) { j.Trigger = job.Trigger{Queued: &job.Queued{}} },
		`run_timeout: PT0S is shorter than PT0.001S`: func(j *job.Job) { j.Options.RunTimeout = 0 },
		`heartbeat_timeout: PT0.000000001S is shorter than PT1S`: func(j *job.Job) {
			j.Options.HeartbeatTimeout = 1
		},
		`stop_grace_period: PT0S is shorter than PT0.001S`:        func(j *job.Job) { j.Options.StopGracePeriod = 0 },
		`max_retry_count: -2 is less than -1`:                     func(j *job.Job) { j.Options.MaxRetryCount = -2 },
		`retry_backoff.initial: PT0S is shorter than PT0.001S`:    func(j *job.Job) { j.Options.RetryBackoff.Initial = 0 },
		`retry_backoff.max: PT0.5S is shorter than initial, PT1S`: func(j *job.Job) { j.Options.RetryBackoff.Max = job.Duration(time.Second / 2) },
		`retry_backoff.coefficient: 0.5 is less than 1`: func(j *job.Job) {
			j.Options.RetryBackoff.Coefficient = 0.5
		},
		`retry_backoff.coefficient: NaN is less than 1`: func(j *job.Job) {
			j.Options.RetryBackoff.Coefficient = math.NaN()
		},
		`owner: the owner has 129 bytes, more than 128`: func(j *job.Job) {
			j.Options.Owner = job.Owner{Organization: strings.Repeat("o", 129-len("organization:"))}
		},
		`description: the description has 1001 bytes, more than 1000`: func(j *job.Job) {
			j.Options.Description = strings.Repeat("d", 1001)
		},
		`tags: 33 tags are more than 32`: func(j *job.Job) {
			j.Options.Tags = map[string]string{}
			for n := range 33 {
				j.Options.Tags[strconv.Itoa(n)] = "x"
			}
		},
		`tags.site: the value has 129 bytes, more than 128`: func(j *job.Job) {
			j.Options.Tags = map[string]string{"site": strings.Repeat("x", 129)}
		},
		`tags: the name of tag "` + strings.Repeat("t", 80) + `" has 129 bytes, more than 128`: func(j *job.Job) {
			j.Options.Tags = map[string]string{strings.Repeat("t", 129): "x"}
		},
		`run_timeout: P3651D is longer than P3650D`: func(j *job.Job) {
			j.Options.RunTimeout = job.Duration(3651 * 24 * time.Hour)
		},
		`heartbeat_timeout: P3651D is longer than P3650D`: func(j *job.Job) {
			j.Options.HeartbeatTimeout = job.Duration(3651 * 24 * time.Hour)
		},
		`worker type "temporal-sys-per-ns-tq": names that start with temporal-sys- are Temporal's own`: func(j *job.Job) {
			j.Worker = "temporal-sys-per-ns-tq"
		},
		`worker type "/_sys/x": a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', ` +
			`and has at most 64 characters`: func(j *job.Job) { j.Worker = "/_sys/x" },
		`provider "TOML": a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', ` +
			`and has at most 64 characters`: func(j *job.Job) { j.Provider = "TOML" },
		`spec: the spec has 18008 bytes, more than 16384: pass large data by reference`: func(j *job.Job) {
			j.Spec = json.RawMessage(`{"a": "` + strings.Repeat("&", 2999) + `\u2028" }`) // As it is sent.
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
	t.Parallel()
	require.Len(t, job.Job{}.Validate(), 9)
}

// The limits that code uses are the bounds in the tags.
func TestLimitsAreBounds(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]func(*job.Job, bool){
		"interval": func(j *job.Job, beyond bool) {
			j.Trigger = job.Trigger{Continuous: &job.Continuous{Interval: less(job.MinInterval, beyond)}}
		},
		"recur_every": func(j *job.Job, beyond bool) {
			j.Recurring = &job.Recurring{RecurEvery: less(job.MinRecurEvery, beyond)}
		},
		"catchup_window": func(j *job.Job, beyond bool) { j.Recurring.CatchupWindow = less(job.MinCatchupWindow, beyond) },
		"max_retry_count": func(j *job.Job, beyond bool) {
			if j.Options.MaxRetryCount = job.MaxRetryLimit; beyond {
				j.Options.MaxRetryCount++
			}
		},
	} {
		j := recurring()
		bound(&j, false)
		require.Empty(t, j.Validate(), name)
		bound(&j, true)
		require.Len(t, j.Validate(), 1, name)
	}
}

func less(d job.Duration, beyond bool) job.Duration {
	if beyond {
		return d - 1
	}
	return d
}

// TestHalvesOfCharacters refuses what readers of JSON would replace by U+FFFD.
func TestHalvesOfCharacters(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		`{"a":"\ud83d\ude00 x \u00e9 \\ud83d \" ä"}`: true, `{"a":"\\\\ud83d"}`: true, `{"\ud83d\ude00\ud83d\ude00":1}`: true, `{"a":"\ufffd"}`: true,
		`{"a":"\ud83d"}`: false, `{"a":"\ud83dx"}`: false, `{"a":"\ud83d\n"}`: false, `{"a":"\ude00\ud83d"}`: false, `{"\uDC00":1}`: false,
		`{"a":"\ud83d\ud83d\ude00"}`: false, `{"a":"\\\ud83d"}`: false, "{\"a\":\"\xff\"}": false,
	} {
		j := job.Job{ID: "a.b", Type: "A", Spec: json.RawMessage(text), Trigger: job.Trigger{OneShot: &job.OneShot{}}, Options: job.DefaultOptions(job.ModeOneShot)}
		var refused bool
		for _, problem := range j.Validate() {
			refused = refused || strings.Contains(problem.String(), "spec: the spec has text that is not Unicode")
		}
		require.Equal(t, whole, !refused, "%s", text)
	}
}
