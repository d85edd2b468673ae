package job_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestBackoffWait(t *testing.T) {
	t.Parallel()
	backoff := job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(5 * time.Second), Coefficient: 2}
	for failures, want := range map[int]time.Duration{
		0:       time.Second,
		1:       time.Second,
		2:       2 * time.Second,
		3:       4 * time.Second,
		4:       5 * time.Second,
		1 << 40: 5 * time.Second,
	} {
		require.Equal(t, want, backoff.Wait(failures), failures)
	}
}

func TestBackoffWaitThatNeverGrows(t *testing.T) {
	t.Parallel()
	backoff := job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(time.Hour), Coefficient: 1}
	require.Equal(t, time.Second, backoff.Wait(1<<40))
}

func TestDefaultOptionsAreValidInEveryMode(t *testing.T) {
	t.Parallel()
	require.Equal(t, job.Unlimited, job.DefaultOptions(job.ModeContinuous).MaxRetryCount)
	for _, mode := range []job.Mode{job.ModeOneShot, job.ModeRecurring, job.ModeQueued} {
		require.Equal(t, 3, job.DefaultOptions(mode).MaxRetryCount, mode)
	}
	for _, mode := range job.Modes() {
		j := recurring()
		j.Options = job.DefaultOptions(mode)
		require.Empty(t, j.Validate(), mode)
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]job.Owner{
		"organization:ucnrs": {Organization: "ucnrs"},
		"user:ann:b":         {User: "ann:b"},
	} {
		got, err := job.ParseOwner(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())

		encoded, err := json.Marshal(got)
		require.NoError(t, err)
		var back job.Owner
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.Equal(t, want, back)
	}
	for _, text := range []string{"", "ucnrs", "user:", "team:a", ":a"} {
		_, err := job.ParseOwner(text)
		require.ErrorContains(t, err, "is not an owner: write organization:NAME or user:NAME", text)
	}
	require.Empty(t, job.Owner{}.String())
	var none job.Owner
	require.NoError(t, json.Unmarshal([]byte(`""`), &none))
	require.Zero(t, none)
}
