// Command soak runs Dendra Jobs for a time under load and faults, and checks by a ledger of
// its own what has to hold: docs/testing.md, "Soak". Its jobs know package workers alone, and
// all else goes through the starter.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/soak/check"
	"github.com/dendrascience/dendra-jobs/soak/cluster"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

func main() {
	if os.Getenv(folderVariable) != "" {
		workerMain()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "cluster" {
		os.Exit(runCluster(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:]))
}

// Streams of random numbers: each part draws from its own, so that what one draws does
// not depend on how quick another is.
const (
	streamFaults = iota
	streamVerbs
	streamHalts
	streamProducers // and those after it
)

// soak is one run.
type soak struct {
	ctx    context.Context //nolint:containedctx // The life of the process.
	cancel context.CancelCauseFunc

	bin, folder string
	stackArgs   []string
	seed        uint64
	length      time.Duration
	pace        time.Duration // the mean time between two faults
	began       time.Time

	cluster *cluster.Cluster // of soak cluster; then there is no stack
	kinds   []string         // of faults of a cluster
	builds  int              // of workers in a cluster
	serving atomic.Int64     // calls of starter serve

	stack     *stack.Process
	stackInfo stack.Info // of its first start
	stackLog  *os.File
	workers   []*worker

	applying sync.Mutex
	version  int

	calls, faults, verbsGiven, samples, recurring, troubles *ledger.Writer
}

func run(args []string) int {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	s := &soak{}
	var again string
	var keep bool
	flags.DurationVar(&s.length, "for", fullLength, "how long there are load and faults")
	flags.Uint64Var(&s.seed, "seed", 0, "seed of all that is random here (default: of the time)")
	flags.StringVar(&s.bin, "bin", "bin", "`folder` of devstack and starter")
	flags.BoolVar(&keep, "keep", false, "keep the ledger and the logs, also without a violation")
	flags.StringVar(&again, "check", "", "only check the ledger in this `folder`, which an earlier run has left")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	s.stackArgs = flags.Args()
	if again != "" {
		return report(again)
	}
	return s.run(keep)
}

// run runs a soak and reports what it found.
func (s *soak) run(keep bool) int {
	if s.length <= 0 {
		fmt.Fprintln(os.Stderr, "soak: the length is not longer than zero")
		return 2
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if err := s.soak(); err != nil {
		fmt.Fprintf(os.Stderr, "soak: %s; the ledger and the logs are in %s\n", err, s.folder)
		return 1
	}
	code := report(s.folder)
	if code == 0 && !keep {
		if err := os.RemoveAll(s.folder); err != nil {
			fmt.Fprintf(os.Stderr, "soak: %s\n", err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(os.Stderr, "soak: the ledger and the logs are in %s; soak --check %s looks at them again\n", s.folder, s.folder)
	return code
}

// soak runs all of it, up to the end of its children.
func (s *soak) soak() (err error) {
	if s.folder, err = os.MkdirTemp("", "soak-"); err != nil {
		return err
	}
	ctx, stopSignals := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stopSignals()
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	s.pace = min(12*time.Second, max(s.length/25, 4*time.Second))
	s.say("seed %d, %s, ledger and logs in %s", s.seed, s.length, s.folder)
	if err := s.openLedger(); err != nil {
		return err
	}
	defer s.stopAll()
	if err := s.begin(); err != nil {
		return err
	}
	halts, enough := context.WithCancel(s.ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.watchHalts(halts) })
	s.underFaults()
	if s.ctx.Err() == nil {
		s.settle()
	}
	enough()
	watching.Wait()
	return context.Cause(s.ctx)
}

// openLedger makes the files of the ledger.
func (s *soak) openLedger() (err error) {
	for _, file := range []struct {
		name string
		into **ledger.Writer
	}{
		{ledger.CallFile, &s.calls}, {ledger.FaultFile, &s.faults}, {ledger.VerbFile, &s.verbsGiven},
		{ledger.SampleFile, &s.samples}, {ledger.RecurringFile, &s.recurring}, {ledger.TroubleFile, &s.troubles},
	} {
		if *file.into, err = ledger.Open(filepath.Join(s.folder, file.name)); err != nil {
			return err
		}
	}
	return nil
}

// workerCount is the number of worker processes.
const workerCount = 3

// begin starts the stack, the workers and the jobs, and waits until each job has
// begun a run.
func (s *soak) begin() (err error) {
	if s.stackLog, err = s.appendTo("stack.log"); err != nil {
		return err
	}
	count := workerCount
	if s.cluster != nil {
		count = cluster.Workers
		if err := s.startCluster(); err != nil {
			return err
		}
	} else if err := s.startStack(s.ctx); err != nil {
		return err
	}
	for n := range count {
		w := &worker{name: fmt.Sprintf("w%d", n+1)}
		if s.cluster != nil {
			w.name, w.build = fmt.Sprintf("worker-%d", n+1), buildName(1)
		}
		s.workers = append(s.workers, w)
		if err := s.startWorker(w); err != nil {
			return err
		}
	}
	s.began = time.Now()
	start, err := ledger.Open(filepath.Join(s.folder, ledger.StartFile))
	if err != nil {
		return err
	}
	s.write(start, ledger.Start{At: ledger.Now(), Wall: s.began, Seed: s.seed, Took: s.length, OneShots: s.oneShots()})
	if err := s.declare(0); err != nil {
		return err
	}
	s.patiently("the jobs file to be applied", func() error {
		_, err := s.starter(s.ctx, 0, "apply", "-f", s.jobsFile(), "--yes")
		return err
	})
	s.patiently("a queue to be set", func() error {
		_, err := s.starter(s.ctx, 0, "queues", "set", queueName(haltedQueue), "--on-failure", "halt")
		return err
	})
	rest := loopRest
	if s.cluster != nil {
		rest = slowRest
	}
	for deadline := time.Now().Add(rest); ; {
		open, err := s.open(0)
		if err != nil || s.ctx.Err() != nil {
			return errors.Join(err, context.Cause(s.ctx))
		}
		if len(open) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d jobs have begun nothing within %s: %v", len(open), rest, open)
		}
		wait(s.ctx, time.Second)
	}
	for n := range recurring {
		j := s.recurringJob(n)
		j.From = time.Now()
		s.write(s.recurring, j)
	}
	return nil
}

// underFaults has the load and the faults, for the length of the soak.
func (s *soak) underFaults() {
	s.say("all jobs are at work; faults begin")
	ctx, cancel := context.WithTimeout(s.ctx, s.length)
	defer cancel()
	var producing, breaking sync.WaitGroup
	producing.Go(func() { s.produce(ctx) })
	faults := s.breakThings
	if s.cluster != nil {
		faults = s.breakCluster
	}
	for _, part := range []func(context.Context){faults, s.giveVerbs} {
		breaking.Go(func() { part(ctx) })
	}
	s.tellTime(ctx)
	breaking.Wait()
	done := make(chan struct{})
	go func() { producing.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(settleTime):
		s.trouble("the last items were not acknowledged within %s after the faults", settleTime)
		s.fail(errors.New("producers do not end"))
		<-done
	}
}

// tellTime says each minute how far the soak is.
func (s *soak) tellTime(ctx context.Context) {
	for wait(ctx, time.Minute) {
		s.say("%s of %s", time.Since(s.began).Round(time.Second), s.length)
	}
}

// random gives a stream of random numbers.
func (s *soak) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, stream)) }

// say prints a line of progress.
func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// write writes a line of the ledger; without its ledger the soak ends.
func (s *soak) write(book *ledger.Writer, line any) {
	if err := book.Add(line); err != nil {
		s.fail(err)
	}
}

// fail ends the soak with an error.
func (s *soak) fail(err error) {
	if s.ctx.Err() == nil {
		s.cancel(err)
	}
}

// report checks the ledger in a folder and prints what was found.
func report(folder string) int {
	book, err := check.Load(folder)
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %s\n", err)
		return 1
	}
	found, err := book.Check()
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %s\n", err)
		return 1
	}
	if err := book.Write(os.Stdout, found); err != nil || found.Count() > 0 {
		return 1
	}
	return 0
}
