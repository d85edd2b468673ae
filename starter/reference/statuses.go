package reference

import "github.com/dendrascience/dendra-jobs/client"

// statuses writes what the statuses of jobs and runs mean.
func (p *page) statuses() {
	p.line("\n## Statuses\n\nOf jobs; the note beside it has the reason or the error:")
	p.header("status", "meaning")
	for _, row := range []struct {
		status  client.JobStatus
		meaning string
	}{
		{client.JobScheduled, "recurring, before its time: no run is under way"},
		{client.JobRunning, "a run is at work, or a continuous job is on"},
		{client.JobWaiting, "in a queue, before its time, or no worker has taken its run: the note says why"},
		{client.JobCanceling, "its run was asked to stop, and has not ended"},
		{client.JobFailing, "recurring or continuous: the last run or iteration failed; the note has since when, NEXT the next run"},
		{client.JobPaused, "someone paused it, or a continuous job failed more often than `max_retry_count`"},
		{client.JobCompleted, "it ended well"},
		{client.JobFailed, "its run failed, and is not tried again"},
		{client.JobStopped, "it was stopped or canceled"},
		{client.JobTerminated, "someone ended its run at once"},
		{client.JobDeleted, "continuous: `apply --prune` or the Job API has removed it"},
	} {
		p.row("`"+string(row.status)+"`", row.meaning)
	}
	p.line("\nOf runs, and of iterations of continuous jobs:")
	p.header("status", "meaning")
	meanings := map[client.RunStatus]string{
		client.RunRunning:     "it is at work",
		client.RunWaiting:     "before its time, or no worker has taken it: RESULT, and `waitReason` in JSON, say what it waits for",
		client.RunCanceling:   "it was asked to stop, and has not ended",
		client.RunCompleted:   "it ended well",
		client.RunFailed:      "its retries are used up, or a retry cannot help",
		client.RunCanceled:    "it stopped when asked",
		client.RunTerminated:  "someone ended it at once",
		client.RunTimedOut:    "Temporal ended it",
		client.RunHeldBack:    "it came before the next run of a failing job, and did nothing; JSON has `heldUntilTime`",
		client.RunSuperseded:  "it gave way to another start, and did nothing; JSON has `supersededByTime`",
		client.RunInterrupted: "of an iteration, which was cut short by a stop, restart, pause, or a worker that shut down",
	}
	for _, status := range client.RunStatuses() {
		p.row("`"+string(status)+"`", meanings[status])
	}
}
