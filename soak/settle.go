package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// Bounds of what follows the faults.
const (
	settleTime = 4 * time.Minute  // until all that was acknowledged has run
	lookAgain  = 3 * time.Second  // between two looks
	toldAfter  = 15 * time.Second // how long after its time a start is looked at: the product takes ten
	loopRest   = 30 * time.Second // a loop and a recurring job have to begin something in this time
	slowRest   = time.Minute      // the same on a cluster, where recurring jobs are rarer
)

// settle undoes what verbs have left, waits until all that was acknowledged has run and
// every loop and recurring job goes on, and asks what became of starts.
func (s *soak) settle() {
	s.say("faults are over; waiting until all is done")
	s.resumeAll()
	began, deadline := ledger.Now(), time.Now().Add(settleTime)
	for wait(s.ctx, lookAgain) {
		open, err := s.open(began)
		if err != nil {
			s.fail(err)
			return
		}
		if len(open) == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.trouble("after %s without faults %d things have not gone on: %s", settleTime, len(open), strings.Join(open[:min(len(open), 20)], ", "))
			break
		}
	}
	wait(s.ctx, toldAfter)
	_ = eachOf(recurring, func(n int) error {
		s.patiently(fmt.Sprintf("the starts of job %s", recurringID(n)), func() error { return s.sample(s.ctx, s.recurringJob(n)) })
		return nil
	})
}

// resumeAll has everything go on that verbs have paused or stopped.
func (s *soak) resumeAll() {
	for n := range queues {
		s.verb(s.ctx, "queues", "resume", queueName(n)) // Refused if there is nothing to resume.
	}
	resumed := ledger.Verb{Name: "resume", Target: ledger.AllJobs, From: ledger.Now()}
	s.patiently("the jobs to be resumed", func() error {
		_, err := s.starter(s.ctx, 0, "jobs", "resume", "--status", "paused", "--yes")
		resumed.OK = err == nil
		return err
	})
	if resumed.To = ledger.Now(); resumed.OK {
		s.write(s.verbsGiven, resumed)
	}
	s.patiently("the starts up to the last definition", func() error { return s.sampleChanging(s.ctx) })
	s.patiently("the jobs file to be applied", func() error {
		_, err := s.starter(s.ctx, 0, "apply", "-f", s.jobsFile(), "--yes")
		return err
	})
}

// patiently tries something until it succeeds. That it does not within a minute is a
// trouble.
func (s *soak) patiently(what string, do func() error) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	for {
		err := do()
		if err == nil || errors.Is(err, context.Canceled) {
			return
		}
		if !wait(ctx, time.Second) {
			s.trouble("waiting for %s: %s", what, err)
			return
		}
	}
}

// open names what has not gone on: jobs that were acknowledged and not done, and
// loops and recurring jobs that have begun nothing since a time.
func (s *soak) open(since time.Duration) ([]string, error) {
	work, err := ledger.Read[ledger.Work](s.folder, ledger.WorkFiles)
	if err != nil {
		return nil, err
	}
	calls, err := ledger.Read[ledger.Call](s.folder, ledger.CallFile)
	if err != nil {
		return nil, err
	}
	verbs, err := ledger.Read[ledger.Verb](s.folder, ledger.VerbFile)
	if err != nil {
		return nil, err
	}
	waiting := map[string]bool{}
	for _, call := range calls {
		for _, job := range call.Jobs {
			waiting[job] = true
		}
	}
	for n := range loops {
		waiting[loopID(n)] = true
	}
	for n := range recurring {
		waiting[recurringID(n)] = true
	}
	job := map[string]string{} // by attempt
	for _, line := range work {
		if line.What == ledger.Begin {
			job[line.Attempt] = line.Job
			if line.At >= since && (line.Mode == "continuous" || line.Mode == "recurring") {
				delete(waiting, line.Job)
			}
		}
	}
	for _, line := range work {
		if name := job[line.Attempt]; line.What == ledger.Done && !strings.Contains(name, ".loop-") && !strings.Contains(name, ".recurring-") {
			delete(waiting, name)
		}
	}
	for _, verb := range verbs {
		if verb.Excuses(verb.Target) {
			delete(waiting, verb.Target)
		}
	}
	var names []string
	for name := range waiting {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
