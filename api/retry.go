package api

import (
	"cmp"
	"context"
	"strconv"

	"connectrpc.com/connect/v2"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// latestRuns is how many runs are looked at for the one to retry before more are asked for.
const latestRuns = 50

// RunToRetry is the run of a job that a retry means. If there is none, the code of the error is
// CodeFailedPrecondition.
func (c *Clients) RunToRetry(ctx context.Context, jobID string) (*jobsv1.Run, error) {
	request := &jobsv1.ListRunsRequest{PageSize: latestRuns, Filter: "job_id = " + strconv.Quote(jobID)}
	for {
		answer, err := c.Runs.ListRuns(ctx, request)
		if err != nil {
			return nil, err
		}
		run, whyNot := verbs.RunToRetry(answer.GetRuns())
		if run != nil {
			return run, nil
		}
		if request.PageToken = answer.GetNextPageToken(); whyNot != "" || request.GetPageToken() == "" {
			return nil, connect.NewError(connect.CodeFailedPrecondition, "its latest run is not retried: "+cmp.Or(whyNot, "there is none"))
		}
	}
}
