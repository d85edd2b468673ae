package workers

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// serviceSearch searches for a service.
type serviceSearch struct{ contract.ChooseServiceInput }

// chooser serves ChooseServiceActivity. Runs that search at the same time in one
// process share what they know of the services.
type chooser struct {
	mu       sync.Mutex
	asked    time.Time
	services []client.LiveService
	err      error
	unread   string // what could not be read, as it was logged
	given    []given
}

// given is a choice that was made lately: the service may not count the run yet.
type given struct {
	service string
	at      time.Time
}

// givenCounts is how long a choice counts besides the handlers that a service reports.
const givenCounts = 10 * time.Second

// withGiven are services with the runs that were sent to them lately.
func (c *chooser) withGiven(services []client.LiveService, now time.Time) []client.LiveService {
	c.given = slices.DeleteFunc(c.given, func(g given) bool { return now.Sub(g.at) > givenCounts })
	services = slices.Clone(services)
	for i := range services {
		for _, g := range c.given {
			if g.service == services[i].ID() {
				services[i].Running++
			}
		}
	}
	return services
}

// choose chooses and keeps the choice in mind.
func (c *chooser) choose(in serviceSearch, services []client.LiveService, waited time.Duration, now time.Time) (string, error) {
	if !in.Spread {
		return in.choose(services, waited)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := services
	if !in.FreeSlot {
		counted = c.withGiven(services, now)
	}
	chosen, err := in.choose(counted, waited)
	if chosen != "" && chosen != in.Last {
		c.given = append(c.given, given{contract.ServiceTaskQueue(in.Worker, chosen), now})
	}
	return chosen, err
}

// How long what is known of the services holds, and how long asking may take.
const (
	servicesKnown = 500 * time.Millisecond
	servicesAsked = 5 * time.Second
)

// live lists the services that live, as they were a moment ago, without those whose
// announcement cannot be read: they are no other service's trouble.
func (c *chooser) live(ctx context.Context) ([]client.LiveService, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() && time.Since(c.asked) < servicesKnown {
		return c.services, c.err
	}
	// The others wait for the answer, which holds for them as well.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), servicesAsked)
	defer cancel()
	workers := client.New(activity.GetClient(ctx), activity.GetInfo(ctx).Namespace).Workers
	services, err := workers.Services(ctx, time.Time{})
	c.services, c.err = services.Live, err
	c.logUnread(ctx, services.Unreadable)
	c.asked = time.Now()
	return c.services, c.err
}

// logUnread logs once what is left out.
func (c *chooser) logUnread(ctx context.Context, unread error) {
	text := ""
	if unread != nil {
		text = unread.Error()
	}
	if text != "" && text != c.unread {
		activity.GetLogger(ctx).Warn("services are left out of the choice", "error", text)
	}
	c.unread = text
}

// ChooseService searches once for a live service that a bound job's run can go to: the
// one it was on, if that still lives; else, as the failover policy says, another
// that has the tags and serves the job type. Among several, a recurring job keeps to one
// as long as it lives; other jobs get the one with the smallest share of its slots in use.
// A service whose slots are all held
// by handlers that were given up counts as one that is away: it takes no run until
// it is restarted.
//
// When there is none the attempt fails and says when to search again. So a run that
// waits holds no place in any worker and spends no history, however long. It
// fails for good, with class errclass.NoService, only under the policy fail.
func (c *chooser) ChooseService(ctx context.Context, input contract.ChooseServiceInput) (contract.ServiceChoice, error) {
	in := serviceSearch{input}
	waited, next := in.backoff(int(activity.GetInfo(ctx).Attempt))
	services, err := c.live(ctx)
	if err == nil {
		chosen, err := c.choose(in, services, waited, time.Now())
		if chosen != "" || err != nil {
			return contract.ServiceChoice{Service: chosen}, err
		}
	}
	return contract.ServiceChoice{}, temporal.NewApplicationErrorWithOptions(in.missing(err), errorTypeNoServiceYet, temporal.ApplicationErrorOptions{
		NextRetryDelay: next, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// errorTypeNoServiceYet is the type of the error of an attempt that found no service.
const errorTypeNoServiceYet = "NoServiceYet"

// How long a run waits between two attempts to find a service: the longer it has
// waited, the longer it waits again.
const (
	minSearchInterval = time.Second
	maxSearchInterval = 15 * time.Second
)

// backoff is how long a run has waited at its n-th attempt to find a service, and how
// long it waits then, but not past the moment at which the failover policy applies.
// It is the sum of the waits that were asked for: it depends on no clock, and time
// without any worker that could search does not count.
func (in serviceSearch) backoff(n int) (waited, next time.Duration) {
	after := in.After.Std()
	for {
		next = min(max(waited/4, minSearchInterval), maxSearchInterval)
		if waited < after {
			next = min(next, after-waited)
		}
		if n--; n <= 0 {
			return waited, next
		}
		waited += next
	}
}

// choose gives the name of a service, "" to go on waiting, or an error for good.
func (in serviceSearch) choose(services []client.LiveService, waited time.Duration) (string, error) {
	var best *client.LiveService
	var rank uint64
	var stuck bool // Last lives, and takes no run any more
	for i := range services {
		s := &services[i]
		if s.Worker != in.Worker || s.State != client.ServiceServing || !s.Has(in.Bind) || !s.Serves(in.Type) {
			continue
		}
		if s.AllStuck() {
			stuck = stuck || s.Name == in.Last
			continue
		}
		if s.Name == in.Last {
			if in.FreeSlot && s.Running >= s.Slots {
				return "", nil
			}
			return in.Last, nil
		}
		// Rendezvous hashing: a job's choice changes only when the chosen goes.
		r := rendezvous(in.JobID, s.Name)
		if best == nil || cmp.Or(in.compareLoad(s, best), cmp.Compare(rank, r), strings.Compare(s.Name, best.Name)) < 0 {
			best, rank = s, r
		}
	}
	name := ""
	if best != nil {
		name = best.Name
	}
	if in.Last == "" && name != "" {
		return name, nil
	}
	if waited < in.After.Std() {
		return "", nil
	}
	switch in.Failover {
	case job.FailoverRequeue:
		return name, nil
	case job.FailoverFail:
		return "", temporal.NewNonRetryableApplicationError(in.lost(stuck), errclass.NoService, nil)
	default:
		return "", nil
	}
}

// compareLoad compares the shares of the slots that two services have in use, if runs are to
// be spread by that.
func (in serviceSearch) compareLoad(a, b *client.LiveService) int {
	if !in.Spread {
		return 0
	}
	return cmp.Compare(a.Running*b.Slots, b.Running*a.Slots)
}

// missing is the sentence of the error of an attempt that found none.
func (in serviceSearch) missing(err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("the live services cannot be listed: %s", err)
	case in.FreeSlot:
		return fmt.Sprintf("service %s has no free slot", contract.ServiceTaskQueue(in.Worker, in.Last))
	case in.Last != "":
		return fmt.Sprintf("service %s is away", contract.ServiceTaskQueue(in.Worker, in.Last))
	}
	return fmt.Sprintf("no live %s service has the tags %s and serves %s", in.Worker, job.TagsText(in.Bind), in.Type)
}

// lost is the sentence of the error for good.
func (in serviceSearch) lost(stuck bool) string {
	switch {
	case in.Last == "":
		return fmt.Sprintf("job %s is bound to tags that no live %s service has that serves %s", in.JobID, in.Worker, in.Type)
	case stuck:
		return fmt.Sprintf("job %s is bound to service %s, all of whose slots are held by handlers that were given up: restart it",
			in.JobID, contract.ServiceTaskQueue(in.Worker, in.Last))
	}
	return fmt.Sprintf("job %s is bound to service %s, which is gone and did not return in time",
		in.JobID, contract.ServiceTaskQueue(in.Worker, in.Last))
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
