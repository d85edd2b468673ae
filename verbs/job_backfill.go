package verbs

import (
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// BackfillJob runs a recurring job for its starts between two times. No end means now.
var BackfillJob = row(Verb{
	Name: "backfill-job", Command: "jobs backfill", Procedure: jobsv1connect.JobServiceBackfillJobProcedure, Role: RoleOperator, Kind: KindJob,
	Label: "Backfill…", Action: jobsv1.AlertAction_ALERT_ACTION_BACKFILL_JOB, WhyNot: SkipNextStart.WhyNot, Previews: true, Times: true,
}, func(a Args) *jobsv1.BackfillJobRequest {
	request := &jobsv1.BackfillJobRequest{Id: a.object(), StartTime: timestamppb.New(a.Start), ValidateOnly: a.Preview}
	if !a.End.IsZero() {
		request.EndTime = timestamppb.New(a.End)
	}
	return request
}, func(a Args, answer *jobsv1.BackfillJobResponse) Done {
	starts := answer.GetStartTimes()
	n := len(starts)
	if n == 0 {
		end := "now"
		if !a.End.IsZero() {
			end = utc(timestamppb.New(a.End))
		}
		result := fmt.Sprintf("no start from %s to %s", utc(timestamppb.New(a.Start)), end)
		return Done{Text: "Job " + a.object() + " has " + result, Result: result, Unchanged: true}
	}
	which := fmt.Sprintf("for its starts from %s to %s", utc(starts[0]), utc(starts[n-1]))
	if !a.Preview {
		return ofJob(a, plantext.Counted(n, "run", "runs")+" requested, "+which)
	}
	done := Done{Text: fmt.Sprintf("Run job %s %s, %s?", a.object(), plantext.Counted(n, "time", "times"), which)}
	for _, at := range starts {
		done.Names = append(done.Names, utc(at))
	}
	return done
})
