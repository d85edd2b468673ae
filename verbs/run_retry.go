package verbs

import (
	"fmt"
	"slices"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// RetryRun runs a run again that ended without success, from its last checkpoint.
var RetryRun = row(Verb{
	Name: "retry-run", Command: "runs retry", Procedure: jobsv1connect.RunServiceRetryRunProcedure, Role: RoleOperator, Kind: KindRun,
	Label: "Retry", ManyJobs: true,
	WhyNot: func(s Subject) string {
		switch {
		case s.Iteration:
			return ofLoop
		case Open(s.Run):
			return "it has not ended"
		case Failed(s.Run), s.Run == jobsv1.RunStatus_RUN_STATUS_CANCELED, s.Run == jobsv1.RunStatus_RUN_STATUS_TERMINATED:
			return ""
		}
		return "it did not fail"
	},
	NotAmong: func(s Subject) string {
		if Failed(s.Run) {
			return ""
		}
		return "somebody has ended it" // It stays as they left it.
	},
}, func(a Args) *jobsv1.RetryRunRequest { return &jobsv1.RetryRunRequest{Name: a.object()} },
	func(a Args, answer *jobsv1.RetryRunResponse) Done {
		switch {
		case answer.GetExistingStatus() != jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED:
			done := ofRun(a, noted(unchanged, "it was retried already"))
			done.Unchanged, done.Run = true, answer.GetRunName()
			return done
		case answer.GetQueue() != "":
			return ofRun(a, fmt.Sprintf("in queue %s again, as item %d, %d ahead", answer.GetQueue(), answer.GetSequence(), answer.GetAhead()))
		}
		done := ofRun(a, "started again")
		done.Run = answer.GetRunName()
		return done
	})

// RunToRetry is the run to retry of a job of which nobody has named one. Of the job's runs, the
// latest first, it is the first that tells how the job does. If that one is not to be retried, it
// is nil, with why: one sentence without its subject. If none tells, both are empty.
func RunToRetry(runs []*jobsv1.Run) (run *jobsv1.Run, whyNot string) {
	at := slices.IndexFunc(runs, func(run *jobsv1.Run) bool { return Tells(run.GetStatus()) })
	if at < 0 {
		return nil, ""
	}
	if whyNot = RetryRun.WhyNotAmong(OfRun(runs[at])); whyNot != "" {
		return nil, whyNot
	}
	return runs[at], ""
}
