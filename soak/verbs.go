package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// verbs are drawn as often as they stand here.
func (s *soak) verbs() []func(context.Context, *rand.Rand) {
	job := func(of func(int) string, n int, verb string) func(context.Context, *rand.Rand) {
		return func(ctx context.Context, random *rand.Rand) { s.verb(ctx, "jobs", verb, of(random.IntN(n))) }
	}
	return []func(context.Context, *rand.Rand){
		job(recurringID, recurring, "trigger"), job(recurringID, recurring, "trigger"),
		job(recurringID, recurring, "stop"), job(recurringID, recurring, "stop"),
		job(recurringID, recurring, "skip-next"), job(recurringID, recurring, "skip-next"),
		job(loopID, loops, "trigger"), job(loopID, loops, "trigger"),
		job(loopID, loops, "restart"), job(loopID, loops, "restart"),
		func(ctx context.Context, random *rand.Rand) {
			s.pair(ctx, random, "jobs", "pause", "resume", recurringID(random.IntN(recurring)))
		},
		func(ctx context.Context, random *rand.Rand) {
			s.pair(ctx, random, "jobs", "pause", "resume", recurringID(random.IntN(recurring)))
		},
		func(ctx context.Context, random *rand.Rand) {
			s.pair(ctx, random, "jobs", "pause", "resume", loopID(random.IntN(loops)))
		},
		func(ctx context.Context, random *rand.Rand) {
			s.pair(ctx, random, "jobs", "stop", "restart", loopID(random.IntN(loops)))
		},
		func(ctx context.Context, random *rand.Rand) {
			s.pair(ctx, random, "queues", "pause", "resume", queueName(random.IntN(queues)))
		},
		s.cancelItem, s.cancelItem,
		s.apply,
	}
}

// giveVerbs has the starter do things until its context ends, and returns when all
// are done.
func (s *soak) giveVerbs(ctx context.Context) {
	random := s.random(streamVerbs)
	verbs := s.verbs()
	var under sync.WaitGroup
	defer under.Wait()
	for {
		for _, n := range random.Perm(len(verbs)) {
			if !wait(ctx, between(random, time.Second, 6*time.Second)) {
				return
			}
			own := rand.New(rand.NewPCG(s.seed, random.Uint64()))
			under.Go(func() { verbs[n](ctx, own) })
		}
	}
}

// verb gives one verb, whatever comes of it, and writes it down.
func (s *soak) verb(ctx context.Context, group, verb, target string, args ...string) {
	noted := ledger.Verb{Name: verb, Target: target, From: ledger.Now()}
	if group == "queues" && verb != "cancel" {
		noted.Name = "queue " + verb
	}
	command := append([]string{group, verb}, args...)
	if verb != "apply" {
		command = append(command, target)
	} else {
		command = append(command[1:], "-f", target, "--yes")
	}
	if verb == "stop" || verb == "cancel" {
		command = append(command, "--yes")
	}
	out, err := s.starter(ctx, 0, command...)
	noted.To, noted.OK = ledger.Now(), err == nil
	if err != nil {
		noted.Said = err.Error()
	} else if verb == "cancel" {
		receipt, err := told[jobsv1.CancelQueueItemResponse](out, nil)
		if err != nil {
			s.trouble("the answer to the cancel of %s cannot be read: %s", target, err)
		}
		noted.Running = receipt.GetRunning()
	}
	s.write(s.verbsGiven, noted)
}

// pair gives a verb, and after some seconds the one that undoes it.
func (s *soak) pair(ctx context.Context, random *rand.Rand, group, verb, undo, target string) {
	s.verb(ctx, group, verb, target)
	wait(ctx, between(random, 2*time.Second, 15*time.Second))
	s.verb(s.ctx, group, undo, target)
}

// cancelItem cancels one of the latest items that were acknowledged, which may wait,
// run or have run.
func (s *soak) cancelItem(ctx context.Context, random *rand.Rand) {
	calls, err := ledger.Read[ledger.Call](s.folder, ledger.CallFile)
	if err != nil {
		s.fail(err)
		return
	}
	calls = slices.DeleteFunc(calls, func(c ledger.Call) bool { return !c.Acked || c.Queue == "" })
	if len(calls) == 0 {
		return
	}
	const latest = 4
	call := calls[len(calls)-1-random.IntN(min(latest, len(calls)))]
	s.verb(ctx, "queues", "cancel", call.Jobs[random.IntN(len(call.Jobs))], call.Queue)
}

// apply applies other definitions of some jobs. What the product tells of the starts
// of a job begins with its definition, so it is asked before.
func (s *soak) apply(ctx context.Context, _ *rand.Rand) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if err := s.sampleChanging(ctx); err != nil {
		return // The server is away.
	}
	s.version++
	if err := s.declare(s.version); err != nil {
		s.fail(err)
		return
	}
	s.verb(ctx, "", "apply", s.jobsFile())
}

// watchHalts resumes queues that have halted, some seconds later.
func (s *soak) watchHalts(ctx context.Context) {
	random := s.random(streamHalts)
	for wait(ctx, 4*time.Second) {
		described, err := told[jobsv1.GetQueueResponse](s.starter(ctx, 0, "queues", "describe", queueName(haltedQueue)))
		if err != nil || described.GetQueue().GetStatus() != jobsv1.QueueStatus_QUEUE_STATUS_HALTED {
			continue
		}
		wait(ctx, between(random, 0, 5*time.Second))
		s.verb(s.ctx, "queues", "resume", queueName(haltedQueue))
	}
}

// sample asks the starter what became of the starts of a recurring job.
func (s *soak) sample(ctx context.Context, j ledger.Recurring) error {
	since := s.began.Add(-time.Minute).Format(time.RFC3339)
	list := []string{"runs", "list", "--job", j.Job, "--since", since, "--limit", "0"}
	missed, err := told[jobsv1.ListMissedStartsResponse](s.starter(ctx, 0, append(list, "--missed")...))
	if err != nil {
		return err
	}
	runs, err := told[jobsv1.ListRunsResponse](s.starter(ctx, 0, list...))
	if err != nil {
		return err
	}
	sample := ledger.Sample{Job: j.Job, Runs: toldRuns(runs)}
	if counts := missed.GetCounts(); len(counts) == 1 {
		sample.From, sample.Until = counts[0].GetStartTime().AsTime(), missed.GetEndTime().AsTime()
		for _, start := range slices.Concat(missed.GetMissedStarts(), missed.GetLeftOutStarts()) {
			sample.Missed = append(sample.Missed, ledger.Missed{
				Due: start.GetStartTime().AsTime(), Reason: lower(start.GetReason(), "MISSED_REASON_"),
			})
		}
	}
	s.write(s.samples, sample)
	return nil
}

// sampleChanging asks what became of the starts of the jobs whose definition changes.
func (s *soak) sampleChanging(ctx context.Context) error {
	return eachOf(changing, func(n int) error { return s.sample(ctx, s.recurringJob(n)) })
}

// eachOf does something for 0..n-1, four at a time.
func eachOf(n int, do func(int) error) error {
	errs := make([]error, n)
	var all errgroup.Group
	all.SetLimit(4)
	for i := range n {
		all.Go(func() error {
			errs[i] = do(i)
			return errs[i]
		})
	}
	_ = all.Wait() // Its error is one of errs.
	return errors.Join(errs...)
}
