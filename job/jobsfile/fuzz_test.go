package jobsfile_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

func FuzzRead(f *testing.F) {
	wrong, err := os.ReadFile("testdata/everything-wrong.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(wrong))
	for _, seed := range []string{
		"", "[", "x = [{a=1},\n{}, [[]]]", "[[a]]\n[a.b]\n[[a]]\n[a.b]", "a.b=1\na.c=2\n[a]\n", "a=1\na.b=2", "[a]\n[a]\n[[a]]",
		"[jobs.live_load_influx_v1.a]\ncontinuous.interval=1\nspec={location='a', every=\"PT1M\"}\n",
		"[jobs.post_to_archive.a]\none_shot={}\nspec = {x=1979-05-27, y=07:32:00, z=[1,2.5,\"\\u00e9\"]}\n",
		"[defaults]\nowner=''\n[jobs.live_load_influx_v1]\nspec={location='a'}\ntags={}\n[jobs.live_load_influx_v1.x]\none_shot={}\n",
		"[jobs.extract_hobo_time_frame.a]\nrecurring.recur_every=1e3\nspec={from=2026-01-01T00:00:00Z,sensors=[],factor=1}\n",
		"x = \"\\e\"", "\"\U00086186", "x = {\na = 1,\n}", "\"\" = 1", "x = '''\n''", "x = 1 # \x7f", "[jobs.post_to_archive.a]\r\nqueued.queue='q'\r\n",
	} {
		f.Add(seed)
	}
	types := testTypes()
	schema := newEditor(f, types)
	f.Fuzz(func(t *testing.T, text string) {
		file, problems := jobsfile.Read("jobs.toml", []byte(text), types)
		lines := strings.Split(text, "\n")
		for _, problem := range problems {
			require.NotEmpty(t, problem.Message)
			requireWithin(t, lines, problem.Line, problem.Column)
		}
		require.Equal(t, file == nil, len(problems) > 0)
		if file == nil {
			return
		}
		require.NoError(t, schema.check(t, text))
		for _, j := range file.Jobs {
			require.Empty(t, j.Validate())
			line, column := file.Position(j.ID, "spec")
			requireWithin(t, lines, line, column)
			requireSameAfterJSON(t, j)
			requireSameFromTOML(t, j, types)
		}
	})
}

func requireWithin(t *testing.T, lines []string, line, column int) {
	t.Helper()
	require.GreaterOrEqual(t, line, 1)
	require.LessOrEqual(t, line, len(lines))
	require.GreaterOrEqual(t, column, 1)
	require.LessOrEqual(t, column, utf8.RuneCountInString(lines[line-1])+1)
}

func requireSameAfterJSON(t *testing.T, j job.Job) {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	var back job.Job
	require.NoError(t, json.Unmarshal(text, &back))
	before, err := j.DefinitionHash()
	require.NoError(t, err)
	after, err := back.DefinitionHash()
	require.NoError(t, err)
	require.Equal(t, before, after)
}
