package workflows

import (
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// maxLostWorkers bounds how often a run is given to another worker after its
// retries are used up, when what failed was the worker and not the job. The
// bound is there for a job that kills every worker it meets.
const maxLostWorkers = 5

// attempts counts the attempts of a run against its retries. An activity of Temporal
// has attempts of its own: those of a run are the attempts of all its activities.
//
// The attempt of a worker that died counts as any other. When it was the last one the
// run gets another, up to maxLostWorkers times. An attempt that a worker handed back
// when it shut down does not count.
type attempts struct {
	limit int // that the retries allow; 0 means no limit
	// counted are those that count, made all that were made.
	counted, made int
	extra         int // given beyond the limit
}

func attemptsOf(j job.Job) attempts {
	if j.Options.MaxRetryCount == job.Unlimited {
		return attempts{}
	}
	return attempts{limit: j.Options.MaxRetryCount + 1}
}

// next is how many attempts the next activity has; 0 means no limit.
func (a *attempts) next() int {
	if a.limit == 0 {
		return 0
	}
	return max(a.limit-a.counted, 1)
}

// handBack adds n attempts, the last of which was handed back.
func (a *attempts) handBack(n int) {
	a.made += n
	a.counted += max(n-1, 0)
}

// lose adds n attempts, in the last of which the worker was lost, and reports whether
// the run may have another one. If not, nothing is added.
func (a *attempts) lose(n int) bool {
	if a.limit != 0 && a.counted+n >= a.limit {
		if a.extra == maxLostWorkers {
			return false
		}
		a.extra++
	}
	a.made += n
	a.counted += n
	return true
}

// lostWorker reports whether err says that a worker fell silent in the middle
// of a run, and the last cursor it reported.
func lostWorker(err error) (json.RawMessage, bool) {
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) || timeout.TimeoutType() != timeoutHeartbeat {
		return nil, false
	}
	var heartbeat contract.Heartbeat
	if timeout.HasLastHeartbeatDetails() {
		if err := timeout.LastHeartbeatDetails(&heartbeat); err != nil {
			return nil, true
		}
	}
	return heartbeat.Cursor, true
}

// lostRun reports whether err says that a worker, which lives, did not know
// whether the run was still its own, and the cursor that it had reached.
func lostRun(err error) (json.RawMessage, bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != errclass.RunLost {
		return nil, false
	}
	return contract.LastOutput(app).Result.Cursor, true
}

// attemptsBefore is how many attempts an activity had whose next one no worker took.
// How many a dead worker had made before is not known.
func attemptsBefore(err error) int {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return max(contract.LastOutput(app).Attempts, 1)
	}
	return 1
}
