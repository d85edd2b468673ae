package cli_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
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

func TestAPlanOfAnotherNamespaceIsRefused(t *testing.T) {
	t.Parallel()
	planned, applied := stacktest.StartNamespace(t), stacktest.StartNamespace(t)
	out := filepath.Join(t.TempDir(), "plan")
	r := console{address: planned.Temporal, namespace: planned.Namespace}.run(t.Context(), "plan", "-f", writeFile(t, "jobs.toml", declared), "--out", out)
	require.Equal(t, 2, r.code, r.stderr)
	r = console{address: applied.Temporal, namespace: applied.Namespace}.run(t.Context(), "apply", out)
	require.Equal(t, 1, r.code)
	require.Equal(t, fmt.Sprintf("starter: %s is not applied: the plan was made for namespace %q, not %q\n", out, planned.Namespace, applied.Namespace), r.stderr)
}

func FuzzReadPlan(f *testing.F) {
	f.Add([]byte(`{"dendra_jobs_plan": 2, "release": "v1", "job_set": {"jobs": [{"id": "a.b"}]}, "plan": {"changes": [{"jobId": "a.b"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, plan, err := cli.ReadPlan(bytes.NewReader(text), "v1")
		require.Equal(t, err == nil, set != nil && plan != nil)
	})
}
