package endtoend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// TestBadInputEndsWithOneSentence gives jobs what they cannot work with, and
// reads what the operator reads.
func TestBadInputEndsWithOneSentence(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.Start(t))
	l := newLocation(b, "badinput", random.Uint64())
	b.worker("backend")
	b.worker("extract", l.secret(), "DENDRA_SECRET_WRONG=not-the-token")
	b.upload("notes.txt", []byte("These are notes, and no photo.\n"))
	b.upload("empty.jpg", nil)
	b.upload("cut.jpg", photo(t, random)[:100_000])
	b.upload("good.png", logo(t, random))
	s3 := strings.TrimPrefix(b.st.S3.Endpoint, "http://")
	vendor := strings.TrimPrefix(l.url, "http://")

	const photos, logos, hobo = "GeneratePhotoVariantsToMinio", "GenerateLogoAvatarVariantsToMinio", "ExtractHoboTimeFrame"
	logger := l.vendor.Options().Loggers[0]
	frame := func(secret, serial string) string {
		return fmt.Sprintf(`{"base_url": %q, "token": "secret://%s", "organization": "ucnrs", "location": "badinput", "backfill": "PT1H",
			"loggers": [{"serial": %q, "station": "Ridge"}]}`, l.url, secret, serial)
	}
	const final, tried = enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED
	for name, tt := range map[string]struct {
		jobType, spec string
		class         string
		state         enumspb.RetryState
		what          []string // parts of the sentence
	}{
		"text": {photos, `{"bucket": "uploads", "key": "notes.txt"}`, "InvalidImage", final,
			[]string{"photo uploads/notes.txt: "}},
		"empty": {photos, `{"bucket": "uploads", "key": "empty.jpg"}`, "InvalidImage", final,
			[]string{"photo uploads/empty.jpg: ", "empty"}},
		"cut": {photos, `{"bucket": "uploads", "key": "cut.jpg"}`, "InvalidImage", final,
			[]string{"photo uploads/cut.jpg: "}},
		"no-bucket": {photos, `{"bucket": "nowhere", "key": "a.jpg"}`, "BucketMissing", final,
			[]string{"photo nowhere/a.jpg: ", `bucket "nowhere" does not exist on ` + s3}},
		"no-target": {logos, `{"bucket": "uploads", "key": "good.png", "target_bucket": "elsewhere"}`, "BucketMissing", final,
			[]string{"logo uploads/good.png: ", `bucket "elsewhere" does not exist on ` + s3}},
		"no-object": {logos, `{"bucket": "uploads", "key": "none.png"}`, "ObjectMissing", tried,
			[]string{"logo uploads/none.png: ", "object uploads/none.png does not exist on " + s3}},
		"no-secret": {hobo, frame("nobody-knows", logger), errclass.Secret, final,
			[]string{"secret://nobody-knows", "DENDRA_SECRET_NOBODY_KNOWS"}},
		"wrong-token": {hobo, frame("wrong", logger), "HobolinkToken", final, []string{vendor}},
		"no-logger":   {hobo, frame(l.name, "99999999"), "HobolinkRequest", final, []string{vendor, "99999999"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, b.st)
			detail, a := b.run("--type", tt.jobType, "--key", "bad-"+name, "--spec", tt.spec, "--max-retry-count", "1")
			require.Equal(t, 1, a.code)
			require.Equal(t, client.RunFailed, detail.Status)
			require.Equal(t, tt.class, detail.Class, detail.Error)
			for _, part := range tt.what {
				require.Contains(t, detail.Error, part)
			}
			require.NotContains(t, detail.Error, "not-the-token")
			require.NotContains(t, detail.Error, "\n")
			lines := strings.Split(strings.TrimSuffix(a.stderr, "\n"), "\n")
			require.Equal(t, fmt.Sprintf("starter: run of job %s failed: %s", detail.JobID, detail.Error), lines[len(lines)-1])
			for _, line := range lines[:len(lines)-1] { // How far the run is, on a busy machine or before a retry.
				require.Regexp(t, "^(waiting|running)", line)
			}
			activity, cause := b.failure(detail.RunRef)
			require.Equal(t, tt.state, activity.RetryState())
			require.Equal(t, tt.state == final, cause.NonRetryable())
			require.Empty(t, b.listing("bad-"+name))
		})
	}
}

// TestAnUploadMayComeLate starts a run before its photo is there.
func TestAnUploadMayComeLate(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.Start(t))
	b.worker("backend")
	const spec = `{"bucket": "uploads", "key": "late.jpg", "prefix": "late"}`
	b.ok("run", "--type", "GeneratePhotoVariantsToMinio", "--key", "late", "--spec", spec, "--max-retry-count", "20", "--detach")
	ref := client.RunRef{WorkflowID: "job/generate_photo_variants_to_minio.late"}
	stacktest.WaitFor(t, "a second attempt", func() (bool, error) {
		run, err := b.client.Runs.Get(t.Context(), ref)
		return err == nil && run.Attempts >= 2 && strings.Contains(run.LastError, "object uploads/late.jpg does not exist"), err
	})
	b.upload("late.jpg", smallPhoto(t, stacktest.Random(t)))
	stacktest.WaitFor(t, "the end of the run", func() (bool, error) {
		run, err := b.client.Runs.Get(t.Context(), ref)
		return err == nil && run.Status == client.RunCompleted && run.Output.Attempts > 1, err
	})
	require.Len(t, b.listing("late"), 5)
}

func TestStarterWithoutTemporal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs bin/starter; skipped with -short")
	}
	address := refusing(t).address()
	for _, args := range [][]string{
		{"run", "--type", "GeneratePhotoVariantsToMinio", "--spec", `{"bucket": "uploads", "key": "a.jpg"}`},
		{"apply", "--yes", "-f", writeFile(t, "jobs.toml", "")},
		{"jobs", "list", "-o", "json"},
	} {
		a := starter(t, []string{"TEMPORAL_ADDRESS=" + address}, args...)
		require.Equal(t, 1, a.code)
		require.Empty(t, a.stdout)
		require.Regexp(t, `^starter: temporal at `+address+` cannot be reached; is it running there\? \(.*\)\n$`, a.stderr)
	}
}

func TestAJobsFileWithErrorsIsNotApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t))
	file := writeFile(t, "jobs.toml", `
[jobs.generate_photo_variants_to_minio.fine]
one_shot = {}
spec = { bucket = "uploads", key = "a.jpg" }

[jobs.generate_photo_variants_to_minio.twice]
one_shot = {}
queued = { queue = "photos" }
spec = { bucket = "uploads", key = "a.jpg", quality = 300 }

[jobs.live_load_influx_v1.common1]
recurring = { recur_every = "PT1M" }
spec = { location = "common1" }

[jobs.extract_hobo_time_frame.month]
recurring = { recur_every = "P1M" }
run_timout = "PT1M"
spec = { token = "abc", organization = "ucnrs", location = "common1", loggers = [] }

[jobs.post_to_nowhere.a]
one_shot = {}
`)
	for _, command := range [][]string{{"apply", "--yes", "-f", file}, {"plan", "-f", file}, {"validate", file}} {
		a := b.starter(command...)
		require.Equal(t, 1, a.code)
		require.Empty(t, a.stdout)
		lines := strings.Split(strings.TrimSuffix(a.stderr, "\n"), "\n")
		problems := lines[:len(lines)-1]
		require.Equal(t, fmt.Sprintf("starter: %s has %d problems", file, len(problems)), lines[len(lines)-1])
		want := []string{
			`8:1: a second mode, "queued"`,
			`9:55: spec.quality: 300 `,
			`12:1: job type LiveLoadInfluxV1 cannot run in mode recurring`,
			`13:8: spec: neither influx_url nor mirrors is set`,
			`16:29: recurring.recur_every: "P1M" counts years or months`,
			`17:1: unknown option "run_timout"; did you mean "run_timeout"?`,
			`18:18: spec.token: `,
			`18:81: spec.loggers: `,
			`20:7: unknown job type "post_to_nowhere"`,
		}
		require.Len(t, problems, len(want), a.stderr)
		for i, problem := range problems {
			require.True(t, strings.HasPrefix(problem, file+":"+want[i]), "%s is not %s", problem, want[i])
		}
	}
	require.JSONEq(t, `{"jobs": []}`, b.ok("jobs", "list", "--all", "-o", "json"))
	ids, err := workflowIDs(b, "")
	require.NoError(t, err)
	require.Empty(t, ids)
}
