package jobsfile_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

type formSpec struct {
	Bucket string            `json:"bucket" help:"where from"`
	Sizes  []int             `json:"sizes,omitempty"`
	Level  string            `json:"level,omitempty" enum:"low,high" default:"low"`
	Wait   job.Duration      `json:"wait,omitzero" default:"PT5S"`
	Deep   formDeep          `json:"deep,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Token  job.SecretRef     `json:"token,omitzero"`
	Fast   bool              `json:"fast,omitempty"`
	Free   any               `json:"free,omitempty"`
}

type formDeep struct {
	Host string   `json:"host"`
	Port int      `json:"port,omitempty" minimum:"1" maximum:"65535"`
	Down formDown `json:"down,omitzero"`
}

type formDown struct {
	A string `json:"a"`
}

func formOf(t *testing.T, mode string) *jobsfile.Form {
	t.Helper()
	s, _, err := schema.OfType(job.NewType("Formed", job.WorkerBackend, "", job.Handler[formSpec](nil)))
	require.NoError(t, err)
	form, err := jobsfile.NewForm("Formed", mode, s.JSON())
	require.NoError(t, err)
	return form
}

// find gives a field by its path.
func find(t *testing.T, fields []jobsfile.Field, path string) jobsfile.Field {
	t.Helper()
	for _, f := range fields {
		if f.Path == path {
			return f
		}
		if len(path) > len(f.Path) && path[:len(f.Path)+1] == f.Path+"." {
			return find(t, f.Fields, path)
		}
	}
	require.Fail(t, "there is no field", path)
	return jobsfile.Field{}
}

func TestFormHasAFieldForEachKey(t *testing.T) {
	t.Parallel()
	fields := formOf(t, "recurring").Fields
	for path, want := range map[string]jobsfile.FieldKind{
		"recurring": jobsfile.FieldTable, "recurring.recur_every": jobsfile.FieldText, "recurring.overlap": jobsfile.FieldChoice,
		"spec.bucket": jobsfile.FieldText, "spec.sizes": jobsfile.FieldLines, "spec.level": jobsfile.FieldChoice, "spec.wait": jobsfile.FieldText,
		"spec.deep": jobsfile.FieldTable, "spec.deep.port": jobsfile.FieldNumber, "spec.deep.down": jobsfile.FieldJSON, "spec.labels": jobsfile.FieldJSON,
		"spec.token": jobsfile.FieldText, "spec.fast": jobsfile.FieldCheck, "spec.free": jobsfile.FieldJSON,
		"run_timeout": jobsfile.FieldText, "max_retry_count": jobsfile.FieldNumber, "retry_backoff.initial": jobsfile.FieldText,
	} {
		require.Equal(t, want, find(t, fields, path).Kind, path)
	}
	require.True(t, find(t, fields, "spec.bucket").Required)
	require.Equal(t, "where from", find(t, fields, "spec.bucket").Help)
	require.Equal(t, "whole number, 1 to 65535", find(t, fields, "spec.deep.port").Type)
	require.Equal(t, []string{"low", "high"}, find(t, fields, "spec.level").Choices)
	require.Equal(t, "PT5S", find(t, fields, "spec.wait").Default)
	require.NotEmpty(t, find(t, fields, "run_timeout").Default)
	_, err := jobsfile.NewForm("Formed", "sometimes", nil)
	require.EqualError(t, err, `there is no mode "sometimes"`)
}

// TestFormGoesBothWays: what a form shows of a job makes the same job.
func TestFormGoesBothWays(t *testing.T) {
	t.Parallel()
	form := formOf(t, "recurring")
	want := job.Job{
		ID: "formed.a", Type: "Formed", Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour), Overlap: job.OverlapSkip}},
		Spec: json.RawMessage(`{"bucket":"a","sizes":[1,2],"wait":"PT1S","deep":{"host":"h","port":80,"down":{"a":"b"}},` +
			`"labels":{"x":"y"},"token":"secret://t","fast":true,"free":[1,{"z":null}]}`),
		Options: job.DefaultOptions(job.ModeRecurring),
	}
	want.Options.RunTimeout = job.Duration(7 * time.Minute)
	want.Options.Tags = map[string]string{"site": "meadow"}
	typed, err := form.Write(want)
	require.NoError(t, err)
	require.Equal(t, "1\n2", typed["spec.sizes"])
	require.NotContains(t, typed, "max_retry_count", "it has its default")
	typed[jobsfile.KeyPath] = "a"
	got, problems := form.Read(func(path string) string { return typed[path] })
	require.Empty(t, problems)
	require.JSONEq(t, string(want.Spec), string(got.Spec))
	got.Spec, want.Spec = nil, nil
	require.Equal(t, want, got)
}

func TestPlaceOfAProblem(t *testing.T) {
	t.Parallel()
	form := formOf(t, "one_shot")
	for path, want := range map[string]string{
		"spec.sizes.1": "spec.sizes", "spec.deep.host": "spec.deep.host", "spec.deep.other": "spec.deep", "run_timeout": "run_timeout",
		"spec": "spec", "other.spec": "", "run_time": "",
	} {
		require.Equal(t, want, form.Place(strings.Split(path, ".")), path)
	}
}

func TestFormTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	form := formOf(t, "recurring")
	good := map[string]string{jobsfile.KeyPath: "a", "spec.bucket": "a", "recurring.recur_every": "PT1M"}
	for name, wrong := range map[string]struct {
		typed map[string]string
		want  string
	}{
		"missing":           {map[string]string{"spec.bucket": " "}, "spec.bucket: it is missing"},
		"missing in table":  {map[string]string{"spec.deep.port": "1"}, "spec.deep.host: it is missing"},
		"no JSON":           {map[string]string{"spec.labels": "{"}, "spec.labels: it is not JSON, such as {}"},
		"two values":        {map[string]string{"spec.free": "1 2"}, "spec.free: it is not JSON, such as {}"},
		"no duration":       {map[string]string{"recurring.recur_every": "often"}, "recurring.recur_every: "},
		"no key":            {map[string]string{jobsfile.KeyPath: "By Form"}, ".key: "},
		"out of bounds":     {map[string]string{"spec.deep.host": "h", "spec.deep.port": "99999"}, "spec.deep.port: "},
		"no time zone":      {map[string]string{"recurring.recur_every": "", "recurring.cron": "0 6 * * *", "recurring.time_zone": "Mars"}, "recurring.time_zone: "},
		"no number in list": {map[string]string{"spec.sizes": "1\nx"}, "spec.sizes.1: "},
		"no number":         {map[string]string{"max_retry_count": "some"}, "max_retry_count: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			typed := maps.Clone(good)
			maps.Copy(typed, wrong.typed)
			_, problems := form.Read(func(path string) string { return typed[path] })
			require.Len(t, problems, 1, problems)
			require.Contains(t, problems[0].String(), wrong.want)
		})
	}
}
