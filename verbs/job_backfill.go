package verbs

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// BackfillJob runs a recurring job for its starts between two times.
var BackfillJob = row(Verb{
	Name: "backfill-job", Command: "jobs backfill", Procedure: jobsv1connect.JobServiceBackfillJobProcedure, Role: RoleOperator, Kind: KindJob,
	Label: "Backfill…", Action: jobsv1.AlertAction_ALERT_ACTION_BACKFILL_JOB, WhyNot: SkipNextStart.WhyNot, Previews: true, Times: true,
}, func(a Args) *jobsv1.BackfillJobRequest {
	return &jobsv1.BackfillJobRequest{
		Id: a.object(), StartTime: timestamppb.New(a.Start), EndTime: timestamppb.New(a.End), ValidateOnly: a.Preview,
	}
}, func(a Args, answer *jobsv1.BackfillJobResponse) Done {
	starts := plantext.Counted(len(answer.GetStartTimes()), "past start", "past starts")
	if !a.Preview {
		return ofJob(a, "runs for "+starts)
	}
	done := Done{Text: "Run " + a.object() + " for " + starts + "?"}
	for _, at := range answer.GetStartTimes() {
		done.Names = append(done.Names, at.AsTime().UTC().Format(time.RFC3339))
	}
	return done
})
