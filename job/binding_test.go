package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestFailoverDefaults(t *testing.T) {
	t.Parallel()
	var options job.Options
	require.Equal(t, job.FailoverRequeue, options.FailoverPolicy())
	require.Equal(t, job.Duration(30*time.Second), options.FailoverWait())
	options.Failover, options.FailoverAfter = job.FailoverWait, job.Duration(time.Minute)
	require.Equal(t, job.FailoverWait, options.FailoverPolicy())
	require.Equal(t, job.Duration(time.Minute), options.FailoverWait())
}

func TestBindingIsChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*job.Options){
		`bind.zo ne: tag "zo ne"`:     func(o *job.Options) { o.Bind = map[string]string{"zo ne": "a"} },
		"bind.zone: tag zone has no":  func(o *job.Options) { o.Bind = map[string]string{"zone": ""} },
		"is not printable text":       func(o *job.Options) { o.Bind = map[string]string{"zone": "a\nb"} },
		"more than 128":               func(o *job.Options) { o.Bind = map[string]string{"zone": strings.Repeat("x", 129)} },
		`failover: "move" is not one`: func(o *job.Options) { o.Failover = "move" },
		"failover_after: PT0.5S is":   func(o *job.Options) { o.FailoverAfter = job.Duration(500 * time.Millisecond) },
	} {
		j := recurring()
		change(&j.Options)
		problems := j.Validate()
		require.Len(t, problems, 1, want)
		require.Contains(t, problems[0].String(), want)
	}
	j := recurring()
	j.Options.Bind = map[string]string{job.TagHost: "field-1.example", "gpu/kind": "A100"}
	require.Empty(t, j.Validate())
}

func TestUnboundJobsKeepTheirHash(t *testing.T) {
	t.Parallel()
	hash, err := recurring().DefinitionHash()
	require.NoError(t, err)
	text := string(job.EncodeJSON(recurring().Options))
	require.NotContains(t, text, "bind")
	require.NotContains(t, text, "failover")
	bound := recurring()
	bound.Options.Bind = map[string]string{"zone": "a"}
	other, err := bound.DefinitionHash()
	require.NoError(t, err)
	require.NotEqual(t, hash, other)
}
