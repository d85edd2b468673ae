package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// The load.
const (
	queues      = 3
	producers   = 4 // one after the other for each queue
	starters    = 2 // of one-shots: a call may take longer than from one to the next
	loops       = 20
	recurring   = 50
	fullLength  = 20 * time.Minute
	oneShotEach = fullLength / 500
	changing    = 10 // recurring jobs, and half as many loops, whose definition is applied anew
	haltedQueue = queues - 1
)

func queueName(n int) string   { return fmt.Sprintf("soak-%d", n) }
func recurringID(n int) string { return fmt.Sprintf("soak_step.recurring-%02d", n) }
func loopID(n int) string      { return fmt.Sprintf("soak_step.loop-%02d", n) }

// seconds is the time after which something comes again. A run costs a cluster several times
// what it costs the embedded stack: there it is four times as long.
func (s *soak) seconds(n int) time.Duration {
	if s.cluster != nil {
		n *= 4
	}
	return time.Duration(n) * time.Second
}

// recurringJob is the n-th recurring job: every 4 to 9 seconds, with handlers that
// take 0.6 to 2.4 s, of which one in ten takes ten seconds.
func (s *soak) recurringJob(n int) ledger.Recurring {
	every := s.seconds(4 + n%6)
	return ledger.Recurring{Job: recurringID(n), Every: every, Offset: time.Duration(n) * time.Second % every, Changing: n < changing}
}

// declare writes the jobs file.
func (s *soak) declare(version int) error {
	var text strings.Builder
	text.WriteString("[jobs.soak_step]\nheartbeat_timeout = \"PT5S\"\nmax_retry_count = -1\nretry_backoff = { initial = \"PT1S\", max = \"PT5S\" }\n")
	for n := range recurring {
		j := s.recurringJob(n)
		spec := fmt.Sprintf("steps = %d, slow = true", 3+n%10)
		if n < changing {
			spec += fmt.Sprintf(", version = %d", version)
		}
		fmt.Fprintf(&text, "\n[jobs.%s]\nrecurring = { recur_every = %d, offset = %d, overlap = \"skip\" }\nspec = { %s }\n",
			j.Job, int(j.Every.Seconds()), int(j.Offset.Seconds()), spec)
	}
	for n := range loops {
		spec := fmt.Sprintf("steps = %d, slow = true", 3+n)
		if n < changing/2 {
			spec += fmt.Sprintf(", version = %d", version)
		}
		fmt.Fprintf(&text, "\n[jobs.%s]\ncontinuous = { interval = %d, restart_on_change = %t }\nspec = { %s }\n",
			loopID(n), int(s.seconds(1+n%3).Seconds()), n%2 == 0, spec)
	}
	return os.WriteFile(s.jobsFile(), []byte(text.String()), 0o600)
}

func (s *soak) jobsFile() string { return filepath.Join(s.folder, "jobs.toml") }

// produce puts items in and starts one-shots until its context ends, and returns
// when all that was asked for is acknowledged, or s.ctx has ended.
func (s *soak) produce(ctx context.Context) {
	var all sync.WaitGroup
	for n := range producers {
		all.Go(func() { s.fillQueue(ctx, n) })
	}
	for n := range starters {
		all.Go(func() { s.startOneShots(ctx, n) })
	}
	all.Wait()
}

// item is a line of the file that is put into a queue.
type item struct {
	Key  string   `json:"key"`
	Spec stepSpec `json:"spec"`
}

// fillQueue is one producer: batch after batch, each repeated until it is acknowledged.
func (s *soak) fillQueue(ctx context.Context, producer int) {
	random := s.random(streamProducers + uint64(producer))
	queue := queueName(producer % queues)
	name := fmt.Sprintf("producer-%d", producer)
	for number := 0; wait(ctx, between(random, s.seconds(3), s.seconds(12))); {
		var lines strings.Builder
		var jobs []string
		for range 1 + random.IntN(4) {
			one := item{Key: fmt.Sprintf("%s-%05d", name, number), Spec: stepSpec{Steps: 1 + random.IntN(4)}}
			if random.IntN(50) == 0 {
				one.Spec.Steps = slowSteps
			}
			one.Spec.FailFirst = producer%queues == haltedQueue && random.IntN(25) == 0
			text, err := json.Marshal(one)
			if err != nil {
				s.fail(err)
				return
			}
			lines.Write(append(text, '\n'))
			jobs = append(jobs, "soak_step."+one.Key)
			number++
		}
		path := filepath.Join(s.folder, name+".items")
		if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
			s.fail(err)
			return
		}
		s.untilAcknowledged(random, ledger.Call{Producer: name, Queue: queue, Jobs: jobs}, func(killAfter time.Duration) error {
			answer, err := told[jobsv1.EnqueueJobsResponse](s.starter(s.ctx, killAfter, "queues", "enqueue", queue, "--type", jobType, "--file", path, "--max-retry-count=-1"))
			if acknowledged := len(answer.GetPlaces()); err == nil && acknowledged != len(jobs) {
				err = fmt.Errorf("%d of %d items were acknowledged", acknowledged, len(jobs))
			}
			return err
		})
	}
}

// oneShots is how many one-shots a soak puts in.
func (s *soak) oneShots() int { return int(s.length / oneShotEach) }

// startOneShots is one starter: it starts its share of the one-shots under keys, some of them
// for later. Each has its time, so that those which an outage has held up come right after it.
func (s *soak) startOneShots(ctx context.Context, first int) {
	random := s.random(streamProducers + producers + uint64(first))
	name := fmt.Sprintf("one-shots-%d", first)
	began := time.Now()
	for number := first; number < s.oneShots() && wait(ctx, time.Until(began.Add(time.Duration(number)*oneShotEach))); number += starters {
		key := fmt.Sprintf("once-%05d", number)
		spec, err := json.Marshal(stepSpec{Steps: 1 + random.IntN(8)})
		if err != nil {
			s.fail(err)
			return
		}
		var at time.Time
		if random.IntN(5) == 0 {
			at = time.Now().Add(between(random, 2*time.Second, 8*time.Second)).Truncate(time.Second)
		}
		s.untilAcknowledged(random, ledger.Call{Producer: name, Jobs: []string{"soak_step." + key}}, func(killAfter time.Duration) error {
			args := []string{"run", "--type", jobType, "--key", key, "--spec", string(spec), "--max-retry-count=-1", "--detach"}
			if time.Now().Add(time.Second).Before(at) {
				args = append(args, "--at", at.Format(time.RFC3339))
			}
			_, err := s.starter(s.ctx, killAfter, args...)
			return err
		})
	}
}

// untilAcknowledged calls the starter until it has said that the jobs are in. One in
// five of the calls is killed within half a second.
func (s *soak) untilAcknowledged(random *rand.Rand, call ledger.Call, do func(killAfter time.Duration) error) {
	for tries := 1; s.ctx.Err() == nil; tries++ {
		var killAfter time.Duration
		if random.IntN(5) == 0 {
			killAfter = between(random, 10*time.Millisecond, 500*time.Millisecond)
		}
		call.At, call.Acked = ledger.Now(), false
		s.write(s.calls, call)
		err := do(killAfter)
		if err == nil {
			call.At, call.Acked = ledger.Now(), true
			s.write(s.calls, call)
			return
		}
		if tries%10 == 0 && !errors.Is(err, context.Canceled) {
			s.say("%s has tried %d times: %s", call.Producer, tries, err)
		}
		wait(s.ctx, between(random, 100*time.Millisecond, 2*time.Second))
	}
}
