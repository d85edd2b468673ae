package verbs

import jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"

// OfRun is what decides on the verbs of a run.
func OfRun(run *jobsv1.Run) Subject {
	return Subject{Run: run.GetStatus(), Iteration: run.GetIteration() > 0}
}

// RunVerbs are the verbs of runs.
func RunVerbs() []*Verb { return []*Verb{RetryRun, CancelRun, TerminateRun} }

// Open reports whether a run has not ended.
func Open(status jobsv1.RunStatus) bool {
	switch status {
	case jobsv1.RunStatus_RUN_STATUS_RUNNING, jobsv1.RunStatus_RUN_STATUS_WAITING, jobsv1.RunStatus_RUN_STATUS_CANCELING:
		return true
	}
	return false
}

// Failed reports whether a run ended without success by itself: nobody has ended it.
func Failed(status jobsv1.RunStatus) bool {
	return status == jobsv1.RunStatus_RUN_STATUS_FAILED || status == jobsv1.RunStatus_RUN_STATUS_TIMED_OUT
}

// Tells reports whether a run tells how its job does: one that was held back or gave way did nothing.
func Tells(status jobsv1.RunStatus) bool {
	switch status {
	case jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED, jobsv1.RunStatus_RUN_STATUS_HELD_BACK, jobsv1.RunStatus_RUN_STATUS_SUPERSEDED:
		return false
	}
	return true
}

const ofLoop = "it is an iteration of a continuous job: stop, restart or run the job"

// hasEnded is why a run cannot be ended.
func hasEnded(s Subject) string {
	switch {
	case s.Iteration:
		return ofLoop
	case !Open(s.Run):
		return "it has ended already"
	}
	return ""
}

// ofRun is what was done to a run.
func ofRun(a Args, result string) Done {
	return Done{Text: "Run " + a.object() + ": " + result, Result: result}
}
