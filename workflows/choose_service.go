package workflows

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
)

// ChooseServiceInput asks for a service that a bound job's run can go to.
type ChooseServiceInput struct {
	JobID  string            `json:"job_id"`
	Worker job.WorkerType    `json:"worker"`
	Type   string            `json:"type"`
	Bind   map[string]string `json:"bind"`
	// Last is the service that the run was on, if there is one.
	Last string `json:"last,omitempty"`
	// Failover says what to do while Last is away, once it has been so for After.
	// The time counts from the start of the activity.
	Failover job.Failover `json:"failover"`
	After    job.Duration `json:"after,omitempty"`
	// Room asks to wait until Last has a free slot: it lives, but did not take the
	// run.
	Room bool `json:"room,omitempty"`
}

// ServiceChoice is the answer of ChooseService.
type ServiceChoice struct {
	Service string `json:"service"`
}

// chooser serves ChooseServiceActivity. Runs that wait at the same time in one
// process share what they know of the services.
type chooser struct {
	mu       sync.Mutex
	asked    time.Time
	services []LiveService
}

// choosePeriod is how often a run that waits for a service looks again.
const choosePeriod = time.Second

// live lists the services that live, as they were a moment ago.
func (c *chooser) live(ctx context.Context) ([]LiveService, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() && time.Since(c.asked) < choosePeriod/2 {
		return c.services, nil
	}
	// The others wait for the answer, and have to heartbeat.
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	services, err := Services(ctx, activity.GetClient(ctx))
	if err == nil {
		c.services, c.asked = services, time.Now()
	}
	return services, err
}

// ChooseService waits for a live service that a bound job's run can go to: the
// one it was on, if that still lives; else, as the failover policy says, another
// that has the tags and serves the job type. Among several, a job keeps to one
// as long as it lives, and jobs are spread evenly.
//
// It fails for good, with class job.ClassNoService, only under the policy fail.
func (c *chooser) ChooseService(ctx context.Context, in ChooseServiceInput) (ServiceChoice, error) {
	// What earlier attempts have waited counts. Differences of one clock, never
	// times of two, so that no clock has to be right.
	var waited time.Duration
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &waited); err != nil {
			waited = 0
		}
	}
	began := time.Now()
	tick := time.NewTicker(choosePeriod)
	defer tick.Stop()
	for {
		elapsed := waited + time.Since(began)
		activity.RecordHeartbeat(ctx, elapsed)
		services, err := c.live(ctx)
		if err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("the live services cannot be listed", "error", err)
		}
		if err == nil {
			chosen, err := in.choose(services, elapsed)
			if chosen != "" || err != nil {
				return ServiceChoice{Service: chosen}, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ServiceChoice{}, ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return ServiceChoice{}, errors.New("the worker that looked for a service shuts down")
		}
	}
}

// choose gives the name of a service, "" to go on waiting, or an error for good.
func (in ChooseServiceInput) choose(services []LiveService, waited time.Duration) (string, error) {
	var best string
	var rank uint64
	for i := range services {
		s := &services[i]
		if s.Worker != in.Worker || s.State != ServiceServing || !s.Has(in.Bind) || !s.Serves(in.Type) {
			continue
		}
		if s.Name == in.Last {
			if in.Room && s.Running >= s.Slots {
				return "", nil
			}
			return in.Last, nil
		}
		// Rendezvous hashing: a job's choice changes only when the chosen goes.
		if r := rendezvous(in.JobID, s.Name); best == "" || r > rank || r == rank && s.Name < best {
			best, rank = s.Name, r
		}
	}
	if in.Last == "" && best != "" {
		return best, nil
	}
	if waited < in.After.Std() {
		return "", nil
	}
	switch in.Failover {
	case job.FailoverRequeue:
		return best, nil
	case job.FailoverFail:
		return "", temporal.NewNonRetryableApplicationError(in.gone(), job.ClassNoService, nil)
	default:
		return "", nil
	}
}

// gone is the sentence of the error for good.
func (in ChooseServiceInput) gone() string {
	if in.Last == "" {
		return fmt.Sprintf("job %s is bound to tags that no live %s service has that serves %s", in.JobID, in.Worker, in.Type)
	}
	return fmt.Sprintf("job %s is bound to service %s, which is gone and did not return in time",
		in.JobID, ServiceTaskQueue(in.Worker, in.Last))
}

func rendezvous(jobID, service string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(jobID + "\x00" + service)) // A hash takes everything.
	// FNV alone barely mixes the last bytes into the high bits.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
