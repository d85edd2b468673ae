package jobsfile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// editor checks files by the schema alone, as an editor does.
type editor struct{ schema *jsonschema.Schema }

func newEditor(t testing.TB, types []job.Type) editor {
	t.Helper()
	text, err := jobsfile.Schema(types)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema:///jobs", document))
	schema, err := compiler.Compile("schema:///jobs")
	require.NoError(t, err)
	return editor{schema}
}

// check says what is wrong with a text; it must be TOML.
func (e editor) check(t testing.TB, text string) error {
	t.Helper()
	values := map[string]any{}
	err := toml.Unmarshal([]byte(text), &values)
	require.NoError(t, err)
	plain, _ := schema.Plain(values)
	return e.schema.Validate(plain)
}

func TestSchemaAccepts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		"[defaults]\n[jobs]\n[jobs.live_load_influx_v1]\n",
		"[jobs.post_to_archive.a]\none_shot = {}\n[jobs.post_to_archive.b]\nqueued.queue = 'q'\nspec = { any = [{}, 1] }\n",
		"[jobs.extract_hobo_time_frame.\"a.1\"]\nspec.from = 2026-01-01T00:00:00Z\nrecurring.recur_every = 900\n",
		// What the jobs of a type share is not required of each.
		"[jobs.live_load_influx_v1]\nspec.location = 'a'\n[jobs.live_load_influx_v1.x]\ncontinuous.interval = 1\n",
		"[jobs.live_load_influx_v1]\nspec.every = 1\n[jobs.live_load_influx_v1.x]\ncontinuous.interval = 1\nspec.location = 'a'\n",
		"[jobs.live_load_influx_v1.tags]\nteam = 'a'\n",
		"[defaults]\nmax_retry_count = -1\nrun_timeout = 0.5\nretry_backoff = { coefficient = 3 }\nowner = 'user:a'\npaused = true\n",
	} {
		read(t, text) // which asks the schema
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	e := newEditor(t, testTypes())
	const one = "[jobs.live_load_influx_v1.a]\n"
	for text, where := range map[string]string{
		"colour = 'red'": "",
		"jobs = 3":       "/jobs",
		"[live_load_influx_v1.common0]\ncontinuous = { interval = 'PT1S' }":                               "",
		"[defaults]\nmax_retry_cnt = 5":                                                                   "/defaults",
		"[defaults]\ncontinuous = { interval = 'PT1S' }":                                                  "/defaults",
		"[defaults]\nspec = {}":                                                                           "/defaults",
		"[defaults]\ndescription = ['ü', 2]":                                                              "/defaults/description",
		"[defaults]\nmax_retry_count = 'x'":                                                               "/defaults/max_retry_count",
		"[defaults]\nretry_backoff = { maximum = 1 }":                                                     "/defaults/retry_backoff",
		"[defaults]\nrun_timeout = true":                                                                  "/defaults/run_timeout",
		"[defaults]\ntags = { team = 1 }":                                                                 "/defaults/tags/team",
		"[jobs.live_load_inflx_v1.a]\ncontinuous = { interval = 'PT1S' }":                                 "/jobs",
		"[jobs.live_load_influx_v1]\npause = true":                                                        "/jobs/live_load_influx_v1/pause",
		"[jobs.live_load_influx_v1]\nspec = { batch_points = 'many' }":                                    "/jobs/live_load_influx_v1/spec/batch_points",
		"[jobs.live_load_influx_v1]\nspec = { locaton = 'x' }":                                            "/jobs/live_load_influx_v1/spec",
		"[jobs.live_load_influx_v1.owner]\ncontinuous = { interval = 'PT1S' }":                            "/jobs/live_load_influx_v1/owner",
		"[jobs.live_load_influx_v1.tags]\ncontinuous = { interval = 'PT1S' }":                             "/jobs/live_load_influx_v1/tags/continuous",
		"[jobs.live_load_influx_v1.recurring]\ncontinuous = { interval = 'PT1S' }\nspec.location = 'a'":   "/jobs/live_load_influx_v1",
		"[jobs.live_load_influx_v1.\"Bad Key\"]\ncontinuous = { interval = 'PT1S' }\nspec.location = 'a'": "/jobs/live_load_influx_v1",
		"[[jobs.extract_hobo_time_frame.west]]\nrecurring = { recur_every = 1 }":                          "/jobs/extract_hobo_time_frame/west",
		one + "spec.location = 'a'":                                                                       "/jobs/live_load_influx_v1/a",
		one + "spec.location = 'a'\ncontinuous.interval = 1\none_shot = {}":                               "/jobs/live_load_influx_v1/a",
		one + "spec.location = 'a'\nqueued.queue = 'q'":                                                   "/jobs/live_load_influx_v1/a",
		one + "spec.location = 'a'\ncontinuous = {}":                                                      "/jobs/live_load_influx_v1/a/continuous",
		one + "spec.location = 'a'\ncontinuous = 'PT1S'":                                                  "/jobs/live_load_influx_v1/a/continuous",
		one + "spec.location = 'a'\ncontinuous = { interval = 1, intervall = 1 }":                         "/jobs/live_load_influx_v1/a/continuous",
		one + "spec.location = 42\none_shot = {}":                                                         "/jobs/live_load_influx_v1/a/spec/location",
		one + "spec = { location = 'a', token = 'hunter2' }\none_shot = {}":                               "/jobs/live_load_influx_v1/a/spec/token",
		one + "spec = 3\none_shot = {}":                                                                   "/jobs/live_load_influx_v1/a/spec",
		one + "spec.every = 1\none_shot = {}":                                                             "/jobs/live_load_influx_v1/a/spec",
		one + "one_shot = {}":                                                                             "/jobs/live_load_influx_v1/a",
		one + "key = { one_shot = {} }":                                                                   "/jobs/live_load_influx_v1/a",
		one + "spec.location = 'a'\nrecuring = { recur_every = 1 }":                                       "/jobs/live_load_influx_v1/a",
	} {
		_, problems := jobsfile.Read("jobs.toml", []byte(text), testTypes())
		require.NotEmpty(t, problems, "%q", text)
		err := e.check(t, text)
		require.Error(t, err, "%q", text)
		require.Contains(t, err.Error()+"\n", "at '"+where+"'", "%q", text)
	}
}

func TestSchemaIsTheSameForTheSameTypes(t *testing.T) {
	t.Parallel()
	for range 3 {
		for _, generate := range []func([]job.Type) ([]byte, error){jobsfile.Schema, jobsfile.Reference} {
			first, err := generate(testTypes())
			require.NoError(t, err)
			again, err := generate(testTypes())
			require.NoError(t, err)
			require.Equal(t, string(first), string(again))
		}
	}
}

func TestSchemaSaysDefaultsAndDescriptions(t *testing.T) {
	t.Parallel()
	text, err := jobsfile.Schema(testTypes())
	require.NoError(t, err)
	var schema struct {
		Properties struct {
			Defaults struct {
				Properties map[string]struct {
					Default     any
					Description string
					Properties  map[string]struct {
						Default     any
						Description string
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	options := schema.Properties.Defaults.Properties
	require.Equal(t, "PT1H", options["run_timeout"].Default)
	require.InDelta(t, 3, options["max_retry_count"].Default, 0)
	require.Equal(t, false, options["paused"].Default)
	require.Equal(t, "PT1M", options["retry_backoff"].Properties["max"].Default)
	for name, option := range options {
		require.NotEmpty(t, option.Description, name)
		for name, setting := range option.Properties {
			require.NotEmpty(t, setting.Description, name)
		}
	}
}

func TestSchemaOfABadType(t *testing.T) {
	t.Parallel()
	bad := job.NewType("Bad", "backend", "", nothing[struct {
		Wait time.Duration `json:"wait"`
	}])
	for _, generate := range []func([]job.Type) ([]byte, error){jobsfile.Schema, jobsfile.Reference} {
		_, err := generate([]job.Type{bad})
		require.ErrorContains(t, err, "job type Bad: ")
	}
}

// everySpec has a field of every kind.
type everySpec struct {
	At     time.Time         `json:"at"`
	Owner  job.Owner         `json:"owner"`
	Secret job.SecretRef     `json:"secret"`
	Wait   job.Duration      `json:"wait"`
	Size   int8              `json:"size" minimum:"2" maximum:"9"`
	Count  int               `json:"count"`
	Factor float64           `json:"factor" help:"times | more"`
	Fast   bool              `json:"fast"`
	Word   string            `json:"word" minLength:"1"`
	Level  string            `json:"level,omitempty" enum:"low,high" default:"low"`
	Parts  []partSpec        `json:"parts"`
	Tags   map[string]string `json:"tags"`
}

type partSpec struct {
	Name string `json:"name" example:"left"`
	Free any    `json:"free,omitempty"`
}

func TestReferenceOfEveryKind(t *testing.T) {
	t.Parallel()
	types := []job.Type{
		job.NewType("DoEverything", "backend", "Does it.", nothing[everySpec], job.ModeQueued, job.ModeOneShot),
		{Name: "PostToArchive", Worker: "archive"},
	}
	text, err := jobsfile.Reference(types)
	require.NoError(t, err)
	const golden = "testdata/reference.md"
	if *update {
		require.NoError(t, os.WriteFile(golden, text, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))

	e := newEditor(t, types)
	for _, example := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		require.Empty(t, problemsOf(example[1], types), example[1])
		require.NoError(t, e.check(t, example[1]))
	}
	require.Equal(t, 2, strings.Count(string(text), "```toml"))
}
