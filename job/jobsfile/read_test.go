package jobsfile_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestEverythingWrong(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/everything-wrong.toml")
	require.NoError(t, err)
	file, problems := jobsfile.Read("jobs.toml", text, testTypes())
	require.Nil(t, file)
	var got strings.Builder
	for _, problem := range problems {
		got.WriteString(problem.String() + "\n")
	}
	const golden = "testdata/everything-wrong.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

func read(t *testing.T, text string) *jobsfile.File {
	t.Helper()
	file, problems := jobsfile.Read("jobs.toml", []byte(text), testTypes())
	require.Empty(t, problems)
	require.NotNil(t, file)
	require.NoError(t, newEditor(t, testTypes()).check(t, text))
	return file
}

func TestReadOfNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# a comment", "[defaults]\n", "[jobs]\n", "[jobs.live_load_influx_v1]\r\n"} {
		require.Empty(t, read(t, text).Jobs, "%q", text)
	}
}

// With -race this finds what readers share.
func TestReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() { _, _ = jobsfile.Read("jobs.toml", []byte("[defaults]\npaused = true\n"), testTypes()) })
	}
	readers.Wait()
}

func TestReadOfAllModes(t *testing.T) {
	t.Parallel()
	file := read(t, `
[jobs.extract_hobo_time_frame.d]
spec = { from = 2026-01-01T00:00:00Z }
one_shot = {}
[jobs.extract_hobo_time_frame.c]
spec.from = "2026-01-01T00:00:00Z"
continuous.interval = 0.5
[jobs.extract_hobo_time_frame.b]
recurring = { recur_every = "15m" }
[jobs.extract_hobo_time_frame.b.spec]
from = 2026-01-01T00:00:00.250+02:00
[jobs.extract_hobo_time_frame."a.1"]
spec.from = 2026-01-01 00:00:00Z
[jobs.extract_hobo_time_frame."a.1".queued]
queue = "tables"
`)
	defaults := func(mode job.Mode) job.Options { return job.DefaultOptions(mode) }
	entry := func(key, spec string, schedule job.Trigger) job.Job {
		return job.Job{
			ID: "extract_hobo_time_frame." + key, Type: "ExtractHoboTimeFrame", Worker: job.WorkerExtract,
			Provider: job.ProviderTOML, Spec: json.RawMessage(spec), Trigger: schedule, Options: defaults(schedule.Mode()),
		}
	}
	require.Equal(t, []job.Job{
		entry("a.1", `{"from":"2026-01-01T00:00:00Z"}`, job.Trigger{Queued: &job.Queued{Queue: "tables"}}),
		entry("b", `{"from":"2026-01-01T00:00:00.25+02:00"}`,
			job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(15 * time.Minute)}}),
		entry("c", `{"from":"2026-01-01T00:00:00Z"}`,
			job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(500 * time.Millisecond)}}),
		entry("d", `{"from":"2026-01-01T00:00:00Z"}`, job.Trigger{OneShot: &job.OneShot{}}),
	}, file.Jobs)
}

func TestInheritance(t *testing.T) {
	t.Parallel()
	file := read(t, `
[defaults]
max_retry_count = 5
run_timeout = "PT30M"
tags = { team = "sensors", site = "north" }
retry_backoff = { initial = "PT2S", max = "PT5M" }
owner = "organization:ucnrs"

[jobs.live_load_influx_v1]
run_timeout = "PT10M"
retry_backoff = { coefficient = 3 }
spec = { batch_points = 5000, every = "PT1M" }
paused = true

[jobs.live_load_influx_v1.own]
description = "own"
run_timeout = 60
tags = { team = "loads" }
paused = false
max_retry_count = 0
continuous = { interval = "PT1S" }
spec = { location = "a", batch_points = 1 }

[jobs.live_load_influx_v1.inherited]
continuous = { interval = "PT1S" }
spec.location = "b"

[jobs.post_to_archive.main]
one_shot = {}
`)
	require.Len(t, file.Jobs, 3)
	inherited, own, other := file.Jobs[0], file.Jobs[1], file.Jobs[2]

	want := job.DefaultOptions(job.ModeContinuous)
	want.MaxRetryCount = 5
	want.RunTimeout = job.Duration(10 * time.Minute)
	want.Tags = map[string]string{"team": "sensors", "site": "north"}
	want.RetryBackoff.Coefficient = 3 // the rest is the built-in default, not that of [defaults]
	want.Owner = job.Owner{Organization: "ucnrs"}
	want.Paused = true
	require.Equal(t, want, inherited.Options)
	require.Equal(t, `{"batch_points":5000,"every":"PT1M","location":"b"}`, string(inherited.Spec))

	want.Description = "own"
	want.RunTimeout = job.Duration(time.Minute)
	want.Tags = map[string]string{"team": "loads"}
	want.Paused = false
	want.MaxRetryCount = 0
	require.Equal(t, want, own.Options)
	require.Equal(t, `{"batch_points":1,"every":"PT1M","location":"a"}`, string(own.Spec))

	require.Equal(t, 5, other.Options.MaxRetryCount)
	require.Equal(t, job.Duration(30*time.Minute), other.Options.RunTimeout)
	require.Equal(t, job.Backoff{Initial: job.Duration(2 * time.Second), Max: job.Duration(5 * time.Minute), Coefficient: 2},
		other.Options.RetryBackoff)
	require.Equal(t, "{}", string(other.Spec))
	require.Equal(t, job.WorkerType("archive"), other.Worker)
}

func TestDefaultsOfAModeFillOnlyWhatIsUnset(t *testing.T) {
	t.Parallel()
	file := read(t, `
[jobs.post_to_archive.a]
continuous = { interval = "PT1S" }
[jobs.post_to_archive.b]
continuous = { interval = "PT1S" }
max_retry_count = 3
[jobs.post_to_archive.c]
one_shot = {}
`)
	require.Equal(t, job.Unlimited, file.Jobs[0].Options.MaxRetryCount)
	require.Equal(t, 3, file.Jobs[1].Options.MaxRetryCount)
	require.Equal(t, 3, file.Jobs[2].Options.MaxRetryCount)
}

func TestPosition(t *testing.T) {
	t.Parallel()
	file := read(t, `[defaults]
heartbeat_timeout = "PT20S"
[jobs.live_load_influx_v1]
run_timeout = "PT10M"
spec = { batch_points = 5000 }
[jobs.live_load_influx_v1.a]
continuous = { interval = "PT1S" }
spec = { "location" = "ä", every = "PT5S" }
`)
	for want, path := range map[[2]int][]string{
		{6, 1}:  {},
		{7, 14}: {"continuous"},
		{7, 27}: {"continuous", "interval"},
		{8, 8}:  {"spec"},
		{8, 23}: {"spec", "location"},
		{8, 36}: {"spec", "every"},
		{5, 25}: {"spec", "batch_points"},
		{4, 15}: {"run_timeout"},
		{2, 21}: {"heartbeat_timeout"},
	} {
		line, column := file.Position("live_load_influx_v1.a", path...)
		require.Equal(t, want, [2]int{line, column}, path)
	}
	line, column := file.Position("live_load_influx_v1.a", "stop_grace_period")
	require.Equal(t, [2]int{6, 1}, [2]int{line, column})
	line, column = file.Position("live_load_influx_v1.a", "spec", "token")
	require.Equal(t, [2]int{8, 8}, [2]int{line, column})
	line, column = file.Position("live_load_influx_v1.none")
	require.Equal(t, [2]int{0, 0}, [2]int{line, column})
}

// problemsOf gives the problems without the name of the file.
func problemsOf(text string, types []job.Type) []string {
	_, problems := jobsfile.Read("", []byte(text), types)
	var got []string
	for _, problem := range problems {
		got = append(got, strings.TrimPrefix(problem.String(), ":"))
	}
	return got
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const load = "[jobs.live_load_influx_v1.a]\ncontinuous.interval=1\nspec.location='a'\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"syntax":      {"[jobs]\nx = \n", []string{`2:5: not TOML: the value is missing`}},
		"open string": {"x = \"abc\ny = 1", []string{`1:9: not TOML: the text is not closed with a quote in its line`}},
		"open header": {"[jobs\nx = 1\n", []string{`1:6: not TOML: the name of the table is not closed with ]`}},
		"no value":    {"x =", []string{`1:3: not TOML: the value is missing`}},
		"open list":   {"x = [1, 2", []string{`1:9: not TOML: the list is not closed with ]`}},
		"control":     {"x = \"a\x01\"", []string{`1:7: not TOML: the text has a control character`}},
		"characters":  {"# ü\nx = [\"üü\", ?]", []string{`2:12: not TOML: a value is expected here, and texts have quotes`}},
		"key twice": {"[jobs]\na=1\na=2\na=3\n", []string{
			`2:1: unknown job type "a"`,
			`3:1: key "a" is already set in line 2`,
			`4:1: key "a" is already set in line 2`,
		}},
		"inline twice":    {"jobs = { a = 1, a = 2 }", []string{`1:17: key "a" is already set in line 1`}},
		"dotted twice":    {load + "spec.location='b'\n", []string{`4:6: key "location" is already set in line 3`}},
		"table after key": {load + "[jobs.live_load_influx_v1.a.spec]\n", []string{`4:1: table [jobs.live_load_influx_v1.a.spec] is already defined in line 3`}},
		"job twice": {load + load + load, []string{
			`4:1: job live_load_influx_v1.a is already defined in line 1`,
			`7:1: job live_load_influx_v1.a is already defined in line 1`,
		}},
		"added to inline": {"[jobs.post_to_archive.a]\none_shot={}\nspec={}\nspec.x=1\n[jobs.post_to_archive.a.spec.y]", []string{
			`4:1: "spec" is an inline table, complete in line 3: nothing can be added to it`,
			`5:25: "spec" is an inline table, complete in line 3: nothing can be added to it`,
		}},
		"table twice and more": {load + "[jobs.live_load_influx_v1.b]\n[jobs.live_load_influx_v1.b]\n\n[defaults]\nx=1", []string{
			`4:1: no mode is set: give the job exactly one of one_shot, continuous, recurring, queued`,
			`4:1: spec: key "location" is missing`,
			`5:1: job live_load_influx_v1.b is already defined in line 4`,
			`8:1: unknown option "x"`,
		}},
		"not tables":       {"jobs = 3\ndefaults = []\n", []string{`1:8: "jobs" is not a table`, `2:12: "defaults" is not a table`}},
		"inherited once":   {"[defaults]\nrun_timeout='PT0S'\n" + load + strings.ReplaceAll(load, ".a]", ".b]"), []string{`2:13: run_timeout: "PT0S" is shorter than PT0.001S`}},
		"relation":         {load + "retry_backoff = { initial = 'PT2M' }", []string{`4:17: retry_backoff.max: PT1M is shorter than initial, PT2M`}},
		"mode not allowed": {"[jobs.live_load_influx_v1.a]\nspec.location=''\nrecurring.recur_every=1", []string{`3:1: job type LiveLoadInfluxV1 cannot run in mode recurring, only in continuous, one-shot`}},
		"three modes": {load + "one_shot={}\nqueued.queue='a'", []string{
			`4:1: a second mode, "one_shot": the job has "continuous" already, and a job has exactly one`,
			`5:1: a second mode, "queued": the job has "continuous" already, and a job has exactly one`,
		}},
		"mode with settings": {"[jobs.post_to_archive.a]\none_shot = { when = 1 }", []string{`2:14: unknown key "when"; the keys here are at`}},
		"list of lists": {"[jobs.extract_hobo_time_frame.a]\none_shot={}\nspec = { from=2026-01-01T00:00:00Z, sensors=[ [1], [ ], {a=1}] }", []string{
			`3:45: spec.sensors.1: a list is not a string`,
			`3:47: spec.sensors.0: a list is not a string`,
			`3:57: spec.sensors.2: a table is not a string`,
		}},
		"local time":     {"[jobs.extract_hobo_time_frame.a]\none_shot={}\nspec.from = 2026-01-01", []string{`3:13: spec.from: "2026-01-01" is not a date and time with an offset, such as 2026-01-31T12:00:00Z`}},
		"nan in foreign": {"[jobs.post_to_archive.a]\none_shot={}\nspec.x.y = [inf]", []string{`3:13: spec.x.y.0: +Inf is not a number that JSON can hold`}},
		"large spec":     {"[jobs.post_to_archive.a]\none_shot={}\nspec.x = '" + strings.Repeat("x", 16<<10) + "'", []string{`3:1: spec: the spec has 16392 bytes, more than 16384: pass large data by reference`}},
		"defaults table": {"[defaults.tags]\nteam = 1", []string{`2:8: tags.team: 1 is not a string`}},
		"number too big": {"[defaults]\nmax_retry_count = 1e30", []string{`2:19: max_retry_count: 1e+30 is more than 1000000`}},
		"windows lines":  {"[defaults]\r\nx = 1\r\n", []string{`2:1: unknown option "x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, problemsOf(c.text, testTypes()))
		})
	}
}

func TestNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\xff\xfea\x00":                  "1:1: the file is in UTF-16: save it as UTF-8",
		"\xfe\xff\x00a":                  "1:1: the file is in UTF-16: save it as UTF-8",
		"a\x00 \x00":                     "1:1: the file is in UTF-16 or is not text: save it as UTF-8",
		"\xef\xbb\xbf[jobs]":             "1:1: the file starts with a byte order mark: save it as UTF-8 without one",
		"# ü\n# é\x00":                   "2:4: a NUL byte: the file is not text",
		"# ü\n# é\xe9!":                  "2:4: byte 0xE9 is not UTF-8",
		strings.Repeat("#", 1<<20) + "#": "1:1: the file is larger than 1 MiB",
	} {
		require.Equal(t, []string{want}, problemsOf(text, testTypes()))
	}
	require.Empty(t, problemsOf(strings.Repeat("#", 1<<20), testTypes()))
}

// A file that is something else may hold what nobody should read in a log.
func TestOfAFileThatIsNoJobsFileNothingIsQuoted(t *testing.T) {
	t.Parallel()
	const canary = "hunter2"
	for text, want := range map[string]string{
		"root:" + canary + ":19000:0:99999:7:::\n": `1:5: not TOML: a key is followed by = and its value`,
		canary + "\n":                  `1:8: not TOML: a key is followed by = and its value`,
		"DB_PASSWORD=" + canary + "\n": `1:13: not TOML: a value is expected here, and texts have quotes`,
		"DB_PASSWORD=\"" + canary + "\"\nTOKEN = \"" + canary + "\"\n": `1:1: not a jobs file: it has no table [jobs.TYPE.KEY]`,
		"[" + canary + "]\nkey = 1\n":                                  `1:2: not a jobs file: it has no table [jobs.TYPE.KEY]`,
		"x = { " + canary + " = 1, " + canary + " = 2 }\n":             `1:20: not a jobs file: it has no table [jobs.TYPE.KEY]`,
		"pin = 0" + canary + "\n":                                      `1:8: not TOML: a value is expected here, and texts have quotes`,
		"pin = 99999999999999999999\n":                                 `1:7: not TOML: the number is too large`,
		"until = 2026-13-" + canary + "\n":                             `1:17: not TOML: there is more text after the value: each key has its own line, and texts have quotes`,
		"-----BEGIN PRIVATE KEY-----\n" + canary + "\n":                `1:12: not TOML: a key is followed by = and its value`,
		"jobs:\n  build:\n    password: " + canary + "\n":              `1:5: not TOML: a key is followed by = and its value`,
		"[jobs.post_to_archive.a]\none_shot={}\nspec.x = " + canary:    `3:10: not TOML: a value is expected here, and texts have quotes`,
		"[jobs.post_to_archive.a]\none_shot={}\nspec.x = 5__" + canary: `3:11: not TOML: the number is not complete`,
	} {
		require.Equal(t, []string{want}, problemsOf(text, testTypes()))
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	const deep = "tables, lists and dotted keys are nested more than 64 levels deep"
	for _, text := range []string{
		"x = " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"x = " + strings.Repeat("{a=", 1000) + "1" + strings.Repeat("}", 1000),
		strings.Repeat("a.", 300_000) + "a = 1",
		"[" + strings.Repeat("a.", 300_000) + "a]",
		"[[" + strings.Repeat("a.", 65) + "a]]",
		"x.y = [" + strings.Repeat("{a.b=[", 22) + strings.Repeat("]}", 22) + "]",
	} {
		got := problemsOf(text, nil)
		require.Len(t, got, 1)
		require.Contains(t, got[0], deep)
	}
	for _, text := range []string{
		"x = " + strings.Repeat("[", 1<<20-10),
		"x = " + strings.Repeat("{a=", 300_000),
		strings.Repeat("a.", 500_000),
		"[" + strings.Repeat("a.", 500_000),
	} {
		got := problemsOf(text, nil)
		require.Len(t, got, 1)
		require.Contains(t, got[0], "not TOML: ")
	}
}

func TestSpecWithoutSchemaIsAProblemOfTheType(t *testing.T) {
	t.Parallel()
	bad := job.NewType("Bad", "backend", "", nothing[struct {
		Wait time.Duration `json:"wait"`
	}])
	require.Equal(t, []string{
		`1:1: job type Bad: schema of struct { Wait time.Duration "json:\"wait\"" }: ` +
			`field Wait: a time.Duration is a count of nanoseconds in JSON: use job.Duration`,
	}, problemsOf("", []job.Type{bad}))
}

func TestReadRecurring(t *testing.T) {
	t.Parallel()
	file := read(t, `
[jobs.post_to_archive.a]
recurring = { recur_every = 3600, offset = 0, jitter = "PT1M", overlap = "buffer_all", catchup_window = "1h" }
[jobs.post_to_archive.b.recurring]
cron = "30 4 * * mon-fri"
time_zone = "Europe/Prague"
start_at = 2026-03-01T00:00:00+01:00
end_at = "2026-06-01T00:00:00.5Z"
[jobs.post_to_archive.c]
recurring.cron = "0 3 * * *"
`)
	require.Len(t, file.Jobs, 3)
	for i, want := range []string{
		`{"recur_every":"PT1H","offset":"PT0S","jitter":"PT1M","overlap":"buffer_all","catchup_window":"PT1H"}`,
		`{"cron":"30 4 * * mon-fri","time_zone":"Europe/Prague","start_at":"2026-03-01T00:00:00+01:00","end_at":"2026-06-01T00:00:00.5Z"}`,
		`{"cron":"0 3 * * *"}`,
	} {
		text, err := json.Marshal(file.Jobs[i].Recurring)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

func TestRecurringProblemsAreWhereTheyStand(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		`{}`:                       `2:13: recurring: no time is set: give it exactly one of recur_every, at least PT1S, and cron`,
		`{ recur_every = "PT0S" }`: `2:29: recurring.recur_every: "PT0S" is shorter than PT1S`,
		`{ recur_every = 0, cron = "* * * * *" }`:             `2:29: recurring.recur_every: 0 is shorter than PT1S`,
		`{ recur_every = 1, catchup_window = 0 }`:             `2:49: recurring.catchup_window: 0 is shorter than PT10S`,
		`{ time_zone = "UTC" }`:                               `2:13: recurring: no time is set: give it exactly one of recur_every, at least PT1S, and cron`,
		`{ recur_every = "P1M" }`:                             `2:29: recurring.recur_every: "P1M" counts years or months, which have no fixed length: write days or weeks, as in P30D`,
		`{ recur_every = 1, cron = "* * * * *"}`:              `2:32: recur_every and cron are both set: a recurring job has exactly one`,
		`{ recur_every = 1, time_zone = "UTC" }`:              `2:32: time_zone goes with cron: an interval is the same in every zone`,
		`{ recur_every = 1, offset = 1 }`:                     `2:41: recurring.offset: PT1S is not shorter than recur_every, PT1S`,
		`{ cron = "61 * * * *" }`:                             `2:22: recurring.cron: "61 * * * *": minute "61": 61 is not from 0 to 59`,
		`{ cron = 5 }`:                                        `2:22: recurring.cron: 5 is not a string`,
		`{ recur_every = 1, overlap = "queue" }`:              `2:42: recurring.overlap: "queue" is not one of skip, buffer_one, buffer_all, cancel_other, terminate_other, allow_all`,
		`{ recur_every = 1, overlap = "" }`:                   `2:42: recurring.overlap: "" is not one of skip, buffer_one, buffer_all, cancel_other, terminate_other, allow_all`,
		`{ recur_every = 1, start_at = 2026-03-01T00:00:00 }`: `2:43: recurring.start_at: "2026-03-01T00:00:00" is not a date and time with an offset, such as 2026-01-31T12:00:00Z`,
		`{ recur_every = 1, start_at = 2026-03-01T00:00:00Z, end_at = 2026-03-01T00:00:00Z }`: `2:74: recurring.end_at: 2026-03-01T00:00:00Z is not later than start_at, 2026-03-01T00:00:00Z`,
		`{ recur_every = 1, crno = "" }`: `2:32: unknown key "crno"; did you mean "cron"?`,
	} {
		_, problems := jobsfile.Read("jobs.toml", []byte("[jobs.post_to_archive.main]\nrecurring = "+settings), testTypes())
		require.Len(t, problems, 1, settings)
		require.Equal(t, "jobs.toml:"+want, problems[0].String(), settings)
	}
}
