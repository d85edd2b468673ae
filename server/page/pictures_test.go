package page_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// readSpec is the spec of the job types of the pictures.
type readSpec struct {
	Takes job.Duration `json:"takes,omitzero" help:"how long a run takes"`
	// Refused is a file: while it is there, the vendor refuses.
	Refused string `json:"refused,omitempty" help:"a file that has runs fail"`
}

func read(ctx context.Context, run job.Run, s readSpec) (job.Result, error) {
	run.Logger().Info("the logger answers", "serial", "21234001")
	timer := time.NewTimer(s.Takes.Std())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-run.Stopping():
		return job.Result{}, job.ErrStopped
	case <-ctx.Done():
		return job.Result{}, ctx.Err()
	}
	if _, err := os.Stat(s.Refused); s.Refused != "" && err == nil {
		return job.Result{}, job.Fail(errclass.HobolinkBusy, "https://api.licor.cloud answers 503: maintenance")
	}
	return job.Result{Message: "96 observations of 1 logger", Counts: map[string]int64{"observations": 96}}, nil
}

// TestPictures takes the picture of the grid: of jobs that ran, some of which fail since a
// vendor is away.
func TestPictures(t *testing.T) {
	t.Parallel()
	if *screenshots == "" {
		t.Skip("no pictures are asked for: -args -screenshots=FOLDER")
	}
	st := stacktest.Start(t)
	w := newWorld(t, st, st.Pipeline(t), []job.Type{
		job.NewType("ExtractHoboTimeFrame", "pictures", "Reads loggers.", read), job.NewType("LiveLoadInfluxV1", "pictures", "Writes points.", read),
		job.NewType("GeneratePhotoVariants", "pictures", "Makes variants.", read),
	})
	away := w.marker + "-away"
	add := func(j *jobsv1.Job, values map[string]any) {
		t.Helper()
		var err error
		j.Spec, err = structpb.NewStruct(values)
		require.NoError(t, err)
		noRetry := int32(0)
		j.Options = &jobsv1.JobOptions{Owner: "organization:demo", MaxRetryCount: &noRetry}
		_, err = w.api.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
		require.NoError(t, err)
	}
	stations := []string{"beach", "creek", "dune", "estuary", "field", "forest", "glacier", "lake", "meadow", "ridge", "summit", "valley"}
	for n, station := range stations {
		values := map[string]any{"takes": fmt.Sprintf("PT0.%dS", 1+n%7)}
		if n%4 == 2 {
			values["refused"] = away
		}
		add(&jobsv1.Job{
			Id:   "extract_hobo_time_frame." + station,
			Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(3 * time.Second)}},
		}, values)
	}
	add(&jobsv1.Job{Id: "live_load_influx_v1.common1", Mode: &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Second)}}},
		map[string]any{"takes": "PT4S"})
	for n := range 4 {
		add(&jobsv1.Job{Id: fmt.Sprintf("generate_photo_variants.photo-%d", n+1), Mode: &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "photos"}}},
			map[string]any{"takes": "PT10M"})
	}
	outcomes := func(station string) string {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{Runs: 60})
		require.NoError(t, err)
		for _, j := range answer.GetOverview().GetJobs() {
			if j.GetId() == "extract_hobo_time_frame."+station {
				return j.GetOutcomes()
			}
		}
		return ""
	}
	stacktest.WaitWithin(t, 10*time.Minute, "twenty runs", func() (bool, error) { return len(outcomes("meadow")) > 20, nil })
	_, err := w.api.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "extract_hobo_time_frame.valley", Reason: "the logger is in repair until May"})
	require.NoError(t, err)
	workertest.Open(t, away)
	stacktest.WaitWithin(t, 10*time.Minute, "three alerts", func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{})
		return len(answer.GetOverview().GetAlerts()) == 3, err
	})
	lookAt(t, w.url, map[string]string{"jobs": "/"})
}
