package endtoend_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// workflowIDs are those that a visibility query finds.
func workflowIDs(b *bench, query string) ([]string, error) {
	response, err := b.client.Temporal().ListWorkflow(b.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: b.st.Namespace, Query: query, PageSize: 1000,
	})
	var ids []string
	for _, info := range response.GetExecutions() {
		ids = append(ids, info.GetExecution().GetWorkflowId())
	}
	return ids, err
}

// TestJobsOfEveryModeAreFound runs the jobs of make dev, those of the repository's own
// jobs.toml and those of the demo organization, and one photo and one logo beside them.
func TestJobsOfEveryModeAreFound(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	for _, name := range []string{"backend", "extract", "load"} {
		b.worker(name)
	}
	demo := readSeed(t, "http://127.0.0.1:8090", b.st.HOBOlink.URL, "127.0.0.1:1024", b.st.LDMP,
		`"recurEvery": "60s"`, `"recurEvery": "3600s"`) // so that the schedule does not come between
	require.NoError(t, newUsers(b).put(t.Context(), demo...))
	declare(b, readJobs(b))
	for _, id := range []string{
		"extract_hobo_time_frame.demo-hobolink", "extract_campbell_scientific_ldmp.demo-ldmp", "prepare_campbell_scientific_ldmp.demo-ldmp",
	} {
		stacktest.WaitFor(t, "job "+id, func() (bool, error) {
			_, err := b.client.Jobs.Get(t.Context(), id)
			return err == nil, err
		})
	}
	b.upload("a.jpg", smallPhoto(t, random))
	b.upload("a.png", logo(t, random))

	b.completed("--type", "GeneratePhotoVariantsToMinio", "--key", "a", "--spec", `{"bucket": "uploads", "key": "a.jpg"}`)
	b.ok("queues", "enqueue", "logos", "--type", "GenerateLogoAvatarVariantsToMinio", "--key", "a", "--spec", `{"bucket": "uploads", "key": "a.png"}`)
	b.completed("extract_hobo_time_frame.demo-hobolink")
	stacktest.WaitFor(t, "the logo", func() (bool, error) { return len(b.listing("logos")) == 4, nil })

	modes := []struct {
		mode         job.Mode
		jobType, id  string
		listedAsRuns bool
	}{
		{mode: job.ModeOneShot, jobType: "GeneratePhotoVariantsToMinio", id: "generate_photo_variants_to_minio.a", listedAsRuns: true},
		{mode: job.ModeQueued, jobType: "GenerateLogoAvatarVariantsToMinio", id: "generate_logo_avatar_variants_to_minio.a", listedAsRuns: true},
		{mode: job.ModeRecurring, jobType: "ExtractHoboTimeFrame", id: "extract_hobo_time_frame.demo-hobolink", listedAsRuns: true},
		{mode: job.ModeContinuous, jobType: "LiveLoadInfluxV1", id: "live_load_influx_v1.common1"},
	}
	for _, m := range modes {
		for _, query := range []string{
			"JobId = '" + m.id + "'",
			"JobType = '" + m.jobType + "'",
			"JobMode = '" + string(m.mode) + "'",
		} {
			// In this namespace the first two are those of one job.
			stacktest.WaitFor(t, "what has "+query, func() (bool, error) {
				found, err := workflowIDs(b, query)
				own := 0
				for _, id := range found {
					if id == "job/"+m.id || strings.HasPrefix(id, "job/"+m.id+"-") {
						own++
					}
				}
				require.True(t, own == len(found) || strings.HasPrefix(query, "JobMode"), "%s found %s", query, found)
				return own > 0, err
			})
		}
		if !m.listedAsRuns {
			continue
		}
		for _, filter := range [][2]string{{"--job", m.id}, {"--type", m.jobType}, {"--mode", string(m.mode)}} {
			stacktest.WaitFor(t, "completed runs", func() (bool, error) {
				var listed jobsv1.ListRunsResponse
				err := protojson.Unmarshal([]byte(b.ok("runs", "list", "-o", "json", filter[0], filter[1], "--status", "completed")), &listed)
				for _, run := range listed.GetRuns() {
					require.Equal(t, m.mode, job.Mode(strings.ReplaceAll(run.GetMode(), "_", "-")))
					if filter[0] == "--mode" && run.GetJobId() != m.id { // Stations of make dev have tables.
						continue
					}
					require.Equal(t, m.id, run.GetJobId())
					require.Equal(t, m.jobType, run.GetJobType())
				}
				return len(listed.GetRuns()) > 0, err
			})
		}
	}

	var all jobsv1.ListJobsResponse
	require.NoError(t, protojson.Unmarshal([]byte(b.ok("jobs", "list", "--all", "-o", "json")), &all))
	listed := map[string]job.Mode{}
	for _, j := range all.GetJobs() {
		known, _ := api.Definition(j)
		listed[j.GetId()] = known.Mode()
	}
	for _, m := range modes {
		require.Equal(t, m.mode, listed[m.id], m.id)
	}

	var output images.Output
	run, err := b.client.Runs.Get(t.Context(), client.RunRef{WorkflowID: "job/generate_logo_avatar_variants_to_minio.a"})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(run.Output.Output, &output))
	require.Equal(t, "logos", run.Queue)
	require.Len(t, output.Variants, 3)
}
