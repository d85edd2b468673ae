package workflows

import (
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// maxLostWorkers bounds how often a run is given to another worker after its
// retries are used up, when what failed was the worker and not the job. The
// bound is there for a job that kills every worker it meets.
const maxLostWorkers = 5

// tries counts the tries of a run, which may take several activities, against
// its retries. The try of a worker that died counts as any other; when it was the
// last one the run gets another, up to maxLostWorkers times. A try that a worker
// handed back when it shut down does not count.
type tries struct {
	most int // that the retries allow; 0 means no limit
	// used are those that count, made all that were made.
	used, made int
	extra      int // given beyond the retries
}

func triesOf(j job.Job) tries {
	if j.Options.MaxRetryCount == job.Unlimited {
		return tries{}
	}
	return tries{most: j.Options.MaxRetryCount + 1}
}

// next is how many tries the next activity has; 0 means no limit.
func (t *tries) next() int {
	if t.most == 0 {
		return 0
	}
	return max(t.most-t.used, 1)
}

// handBack notes n tries, the last of which was handed back.
func (t *tries) handBack(n int) {
	t.made += n
	t.used += max(n-1, 0)
}

// lose notes n tries, in the last of which the worker was lost, and says whether
// the run may be tried again. If not, they are not noted.
func (t *tries) lose(n int) bool {
	if t.most != 0 && t.used+n >= t.most {
		if t.extra == maxLostWorkers {
			return false
		}
		t.extra++
	}
	t.made += n
	t.used += n
	return true
}

// lostWorker reports whether err says that a worker fell silent in the middle
// of a run, and the last cursor it reported.
func lostWorker(err error) (json.RawMessage, bool) {
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) || timeout.TimeoutType() != timeoutHeartbeat {
		return nil, false
	}
	var beat contract.Heartbeat
	if timeout.HasLastHeartbeatDetails() {
		if err := timeout.LastHeartbeatDetails(&beat); err != nil {
			return nil, true
		}
	}
	return beat.Cursor, true
}

// lostRun reports whether err says that a worker, which lives, could not tell
// whether the run was still its own, and the cursor that it had reached.
func lostRun(err error) (json.RawMessage, bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != contract.ErrorTypeRunLost {
		return nil, false
	}
	return contract.LastOutput(app).Result.Cursor, true
}

// triesBefore is how many tries an activity had that ended since no worker took
// the next one. What a dead worker had tried before is not known.
func triesBefore(err error) int {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return max(contract.LastOutput(app).Attempts, 1)
	}
	return 1
}
