package jobsfile_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

// requireSameFromTOML requires that the table of a job declares it.
func requireSameFromTOML(t *testing.T, j job.Job, types []job.Type) {
	t.Helper()
	text, err := jobsfile.TOML(j)
	require.NoError(t, err)
	file, problems := jobsfile.Read("jobs.toml", []byte(text), types)
	require.Empty(t, problems, text)
	require.Equal(t, []job.Job{j}, file.Jobs, text)
}

func TestTOMLIsAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	const text = `[jobs.extract_hobo_time_frame."north.1"]
recurring = { recur_every = "P1D", offset = "PT0S", start_at = "2026-03-01T00:00:00Z" }
description = "a < b & \"c\""
owner = "user:ada"
tags = { team = "sensors", "two words" = "" }
max_retry_count = 0
retry_backoff = { initial = "PT1S", max = "PT5M", coefficient = 2 }
deadline = { time = "06:00", time_zone = "Europe/Prague" }

[jobs.extract_hobo_time_frame."north.1".spec]
from = "2026-01-01T00:00:00Z"
`
	j := read(t, text).Jobs[0]
	written, err := jobsfile.TOML(j)
	require.NoError(t, err)
	require.Equal(t, text, written)
	requireSameFromTOML(t, j, testTypes())
}

func TestTOMLOfDocumentedJobs(t *testing.T) {
	t.Parallel()
	jobs := 0
	for _, example := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(document(t), -1) {
		file, problems := jobsfile.Read("jobs.toml", []byte(example[1]), testTypes())
		if len(problems) > 0 {
			continue // A part of a job.
		}
		for _, j := range file.Jobs {
			jobs++
			requireSameFromTOML(t, j, testTypes())
		}
	}
	require.Positive(t, jobs)
}

func TestTOMLOfSpecs(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		`{}`, `{"":"","a.b":{"c d":[{"e":[]},{}]},"é":"\u007f\u009b\u2028\b\f<"}`, `{"n":[0,-1,1.5,1e+21,1e-7,9007199254740993],"b":[true,false]}`,
		`{"list":[[1],["x"]],"nested":{"deep":{"deeper":{"x":1}}}}`,
	} {
		j := job.Job{
			ID: "post_to_archive.a", Type: "PostToArchive", Worker: "archive", Provider: job.ProviderTOML,
			Trigger: job.Trigger{OneShot: &job.OneShot{At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}}, Options: job.DefaultOptions(job.ModeOneShot),
		}
		canonical := map[string]any{}
		decoder := json.NewDecoder(strings.NewReader(spec))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&canonical))
		var err error
		j.Spec, err = json.Marshal(canonical)
		require.NoError(t, err)
		requireSameFromTOML(t, j, testTypes())
	}
}

func TestTOMLOfWhatNoFileDeclares(t *testing.T) {
	t.Parallel()
	j := job.Job{
		ID: "post_to_archive.a", Type: "PostToArchive", Worker: "archive", Provider: job.ProviderTOML, Spec: json.RawMessage(`{"a":null,"b":{"c":null},"n":18446744073709551616}`),
		Trigger: job.Trigger{OneShot: &job.OneShot{}}, Options: job.DefaultOptions(job.ModeOneShot),
	}
	text, err := jobsfile.TOML(j)
	require.NoError(t, err)
	require.Equal(t, "[jobs.post_to_archive.a]\none_shot = {}\n\n[jobs.post_to_archive.a.spec]\nb = {}\nn = 18446744073709551616.0\n", text)
	require.Len(t, read(t, text).Jobs, 1)

	j.Spec = json.RawMessage(`{"a":[{"b":[1,null]}]}`)
	_, err = jobsfile.TOML(j)
	require.EqualError(t, err, "job post_to_archive.a: spec: a: 0: b: 1: a list of TOML has no null")

	j.Spec = json.RawMessage(`{}`)
	for _, key := range []string{"tags", "recurring", "spec", "run_timeout"} {
		j.ID = "post_to_archive." + key
		_, err = jobsfile.TOML(j)
		require.ErrorContains(t, err, "no job of a file has the key")
	}
}
