package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/starter/cli"
)

func TestWhatIsNoSavedPlanIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                        "not a saved plan: plan --out writes one",
		`[jobs]`:                  "not a saved plan: plan --out writes one",
		`{"changes": []}`:         "not a saved plan: plan --out writes one",
		`{"dendra_jobs_plan": 9}`: "a saved plan of format 9, and this release knows 2: plan again",
		`{"dendra_jobs_plan": 2, "release": "v0"}`:                                                       "a plan that release v0 has made, and this is v1: plan again",
		`{"dendra_jobs_plan": 2, "release": "v1"}`:                                                       "not a saved plan: plan --out writes one",
		`{"dendra_jobs_plan": 2, "release": "v1", "job_set": {"jobs": [{"idd": "x"}]}, "plan": {}}`:      "not a saved plan: plan --out writes one",
		`{"dendra_jobs_plan": 2, "release": "v1", "job_set": {"jobs": []}, "plan": {"changes": "none"}}`: "not a saved plan: plan --out writes one",
	} {
		_, _, err := cli.ReadPlan(strings.NewReader(text), "v1")
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzReadPlan(f *testing.F) {
	f.Add([]byte(`{"dendra_jobs_plan": 2, "release": "v1", "job_set": {"jobs": [{"id": "a.b"}]}, "plan": {"changes": [{"jobId": "a.b"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, plan, err := cli.ReadPlan(bytes.NewReader(text), "v1")
		require.Equal(t, err == nil, set != nil && plan != nil)
	})
}
