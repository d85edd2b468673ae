package workers_test

import (
	"testing"

	"github.com/dendrascience/dendra-jobs/internal/workertest"
)

// doneBy says which processes did something for a job.
func doneBy(t *testing.T, l workertest.Book, jobID string) map[int]bool {
	t.Helper()
	pids := map[int]bool{}
	for _, e := range l.Read(t) {
		if e.JobID == jobID {
			pids[e.PID] = true
		}
	}
	return pids
}

// steps are the steps of a run, in the order in which they were done; "" means all runs.
func steps(t *testing.T, l workertest.Book, runID string) []int {
	t.Helper()
	var steps []int
	for _, e := range l.Read(t) {
		if e.What == "step" && (runID == "" || e.RunID == runID) {
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// stepsByJob counts the steps of each job.
func stepsByJob(t *testing.T, l workertest.Book) map[string]int {
	t.Helper()
	steps := map[string]int{}
	for _, e := range l.Read(t) {
		if e.What == "step" {
			steps[e.JobID]++
		}
	}
	return steps
}
