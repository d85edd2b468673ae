package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// ErrFailoverAfter says that a run would wait for longer than its failover_after.
var ErrFailoverAfter = errors.New("failover_after is too short")

// Bindings are what is known of the server and its services that jobs are bound to.
type Bindings struct {
	lacking  error // that the server has no services
	services []LiveService
}

// Bindings reads what [Bindings.Check] needs to know of some jobs.
func (c *WorkerClient) Bindings(ctx context.Context, jobs []job.Job) (Bindings, error) {
	if !slices.ContainsFunc(jobs, func(j job.Job) bool { return len(j.Options.Bind) > 0 }) {
		return Bindings{}, nil
	}
	switch err := c.CheckServices(ctx); {
	case errors.Is(err, ErrNoServices):
		return Bindings{lacking: err}, nil
	case err != nil || !slices.ContainsFunc(jobs, failsOverAfter):
		return Bindings{}, err
	}
	// One that cannot be described now is not compared.
	services, err := c.Services(ctx, time.Time{})
	if len(services.Live) > 0 {
		err = nil
	}
	return Bindings{services: services.Live}, err
}

// failsOverAfter reports whether the definition of a bound job has a time for its failover.
func failsOverAfter(j job.Job) bool {
	return len(j.Options.Bind) > 0 && j.Options.FailoverAfter > 0 && j.Options.FailoverPolicy() != job.FailoverWait
}

// Check says why runs of a job cannot be bound as it asks for: [ErrNoServices] or
// [ErrFailoverAfter]. Services that come later are not known.
func (b Bindings) Check(j job.Job) error {
	if len(j.Options.Bind) == 0 {
		return nil
	}
	if b.lacking != nil {
		return fmt.Errorf("it has the option bind: %w", b.lacking)
	}
	if !failsOverAfter(j) {
		return nil
	}
	for _, s := range b.services {
		if s.Worker == j.Worker && hasTags(s.Tags, j.Options.Bind) && s.Timeout > j.Options.FailoverAfter {
			return fmt.Errorf("%w: it is %s, and service %s counts as away after %s, its --service-timeout",
				ErrFailoverAfter, j.Options.FailoverAfter, s.ID(), s.Timeout)
		}
	}
	return nil
}

// checkBind refuses jobs whose runs would look for a service for ever, or for longer than
// they say.
func (c *conn) checkBind(ctx context.Context, jobs ...job.Job) error {
	bindings, err := (&WorkerClient{c}).Bindings(ctx, jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := bindings.Check(j); err != nil {
			return fmt.Errorf("job %s cannot be bound: %w", j.ID, err)
		}
	}
	return nil
}
