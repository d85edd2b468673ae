package verbs

import jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"

// Outcome is a letter of outcomes with its meaning.
type Outcome struct{ Letter, Text string }

// NoRun is the letter of a start that has no run.
const NoRun = "M"

// Outcomes are all letters.
func Outcomes() []Outcome {
	return []Outcome{
		{"C", "completed"}, {"F", "failed"}, {"X", "canceled"}, {"K", "terminated"}, {"T", "timed out"}, {"H", "held back"},
		{"P", "gave way"}, {"R", "running"}, {"W", "waiting"}, {NoRun, "no run"}, {"I", "cut short"},
	}
}

// Letter is the letter of a run in outcomes.
func Letter(status jobsv1.RunStatus) string {
	switch status {
	case jobsv1.RunStatus_RUN_STATUS_RUNNING, jobsv1.RunStatus_RUN_STATUS_CANCELING:
		return "R"
	case jobsv1.RunStatus_RUN_STATUS_WAITING:
		return "W"
	case jobsv1.RunStatus_RUN_STATUS_COMPLETED:
		return "C"
	case jobsv1.RunStatus_RUN_STATUS_FAILED:
		return "F"
	case jobsv1.RunStatus_RUN_STATUS_CANCELED:
		return "X"
	case jobsv1.RunStatus_RUN_STATUS_TERMINATED:
		return "K"
	case jobsv1.RunStatus_RUN_STATUS_TIMED_OUT:
		return "T"
	case jobsv1.RunStatus_RUN_STATUS_HELD_BACK:
		return "H"
	case jobsv1.RunStatus_RUN_STATUS_SUPERSEDED:
		return "P"
	case jobsv1.RunStatus_RUN_STATUS_INTERRUPTED:
		return "I"
	}
	return "?"
}
