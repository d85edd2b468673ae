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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/soak/cluster"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// deployment is the Worker Deployment of the workers.
const deployment = "dendra-jobs"

// runCluster is the command soak cluster: the same load and checks on a cluster.
func runCluster(args []string) int {
	flags := flag.NewFlagSet("soak cluster", flag.ContinueOnError)
	s := &soak{}
	var servers, dynamic, kinds, command string
	var hosts int
	var keep bool
	flags.DurationVar(&s.length, "duration", fullLength, "how long there are load and faults")
	flags.Uint64Var(&s.seed, "seed", 0, "seed of all that is random here (default: of the time)")
	flags.StringVar(&kinds, "faults", strings.Join(faultKinds(), ","), "kinds of faults, separated by commas")
	flags.StringVar(&s.bin, "bin", "bin", "`folder` of starter")
	flags.StringVar(&servers, "servers", "bin/compose/servers", "`folder` of the servers that make servers builds")
	flags.StringVar(&dynamic, "dynamic-config", "deploy/compose/dynamicconfig.yaml", "Temporal's dynamic configuration, a `file`")
	flags.IntVar(&hosts, "temporal-hosts", 3, "Temporal hosts, from 1 to 3")
	flags.StringVar(&command, "run", "", "only bring the servers up, run this `command` of the shell as a caller of theirs, and remove them")
	flags.BoolVar(&keep, "keep", false, "keep the ledger and the logs, also without a violation")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	for _, kind := range strings.Split(kinds, ",") {
		if !slices.Contains(faultKinds(), kind) {
			fmt.Fprintf(os.Stderr, "soak cluster: --faults: there is no kind %q, only %s\n", kind, strings.Join(faultKinds(), ", "))
			return 2
		}
		s.kinds = append(s.kinds, kind)
	}
	if hosts < 1 || hosts > 3 {
		fmt.Fprintln(os.Stderr, "soak cluster: --temporal-hosts is from 1 to 3")
		return 2
	}
	var err error
	s.cluster, err = cluster.New(cluster.Options{TemporalHosts: hosts, Servers: servers, Starter: filepath.Join(s.bin, "starter"), Dynamic: dynamic, Say: s.say})
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak cluster: %s\n", err)
		return 2
	}
	if command != "" {
		return s.runOn(command)
	}
	return s.run(keep)
}

// runOn runs a command on the servers alone, and gives its exit code.
func (s *soak) runOn(command string) int {
	ctx, stopSignals := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stopSignals()
	folder, err := os.MkdirTemp("", "soak-")
	if err == nil {
		err = s.cluster.Start(ctx, filepath.Join(folder, "cluster"))
	}
	code := 1
	if err == nil {
		var p *stack.Process
		if p, err = s.cluster.Caller(stack.Command{
			Path: "sh", Args: []string{"-c", command}, Env: append(s.cluster.Env(), "SOAK_SERVER_PIDS="+s.cluster.TemporalPIDs()), Stdout: os.Stdout, Stderr: os.Stderr, Orphaned: syscall.SIGTERM,
		}).Start(); err == nil {
			select {
			case <-p.Done():
			case <-ctx.Done():
				p.Stop(stopGrace)
			}
			code = p.ExitCode()
		}
	}
	if err := errors.Join(err, s.cluster.Stop(), os.RemoveAll(folder)); err != nil {
		fmt.Fprintf(os.Stderr, "soak cluster: %s\n", err)
		return 1
	}
	return code
}

// startCluster brings up the servers.
func (s *soak) startCluster() error {
	if err := s.cluster.Start(s.ctx, filepath.Join(s.folder, "cluster")); err != nil {
		return err
	}
	if slices.Contains(s.kinds, kindDelay) && !s.cluster.Delays {
		s.say("this kernel has no netem (sch_netem): the faults of kind %s are left out", kindDelay)
	}
	s.say("clocks are not set apart: no namespace has a clock of its own for the time of day")
	s.builds = 1
	return nil
}

// throughServer has a command of the starter call one server after the other.
func (s *soak) throughServer(command stack.Command) stack.Command {
	command.Path, _ = filepath.Abs(command.Path)
	if command.Args[0] != "deploy" {
		command.Args = append(command.Args, "--server", s.cluster.Server(int(s.serving.Add(1))))
	}
	return s.cluster.Caller(command)
}

// buildName is that of the workers' n-th build. All have the same code.
func buildName(n int) string { return fmt.Sprintf("build-%d", n) }

// Kinds of faults, as --faults names them.
const (
	kindKill     = "kill"
	kindFreeze   = "freeze"
	kindPostgres = "postgresql"
	kindCut      = "cut"
	kindOneWay   = "one-way"
	kindLoss     = "loss"
	kindDelay    = "delay"
	kindDisk     = "disk"
	kindBuild    = "build"
)

// clusterFault is what is done to a host; it returns when that is over.
type clusterFault struct {
	kind, name string
	hosts      string // the beginning of the hosts' names
	do         func(ctx context.Context, host string, random *rand.Rand) error
}

// clusterDeck has each fault as often as it is drawn, before all are drawn again.
func (s *soak) clusterDeck() []clusterFault {
	c := s.cluster
	kill := func(hosts string) clusterFault { return clusterFault{kindKill, ledger.FaultKill, hosts, s.killHost} }
	freeze := func(hosts string) clusterFault {
		return clusterFault{kindFreeze, ledger.FaultFreeze, hosts, s.freezeHost}
	}
	net := func(kind, name, hosts string, begin func(string) (func() error, error)) clusterFault {
		return clusterFault{kind, name, hosts, func(ctx context.Context, host string, random *rand.Rand) error {
			restore, err := begin(host)
			if err == nil {
				wait(ctx, between(random, 5*time.Second, longestFreeze))
			}
			if again := restore(); err == nil {
				err = again
			}
			return err
		}}
	}
	cutOneWay := func(deaf bool) func(string) (func() error, error) {
		return func(host string) (func() error, error) { return c.CutOneWay(host, deaf) }
	}
	restart := func(name string, atOnce bool, away time.Duration) clusterFault {
		return clusterFault{kindPostgres, name, cluster.PostgreSQL, func(ctx context.Context, host string, _ *rand.Rand) error {
			c.StopPostgreSQL(atOnce)
			wait(ctx, away)
			return c.Begin(host)
		}}
	}
	return []clusterFault{
		kill("temporal-"), kill("temporal-"), kill("worker-"), kill("worker-"), kill("nats-"), kill("serve-"), kill(cluster.S3), kill(cluster.PostgreSQL),
		freeze("temporal-"), freeze("worker-"), freeze("nats-"), freeze("serve-"), freeze(cluster.S3), freeze(cluster.PostgreSQL),
		restart("restarted fast", false, 0), restart("restarted immediately", true, 0), restart("away for 15 s", false, 15*time.Second),
		net(kindCut, "cut off", "temporal-", c.Cut), net(kindCut, "cut off", "worker-", c.Cut), net(kindCut, "cut off", cluster.PostgreSQL, c.Cut),
		net(kindCut, "cut off", "nats-", c.Cut), net(kindCut, "cut off", "serve-", c.Cut),
		net(kindOneWay, "hears nothing", "temporal-", cutOneWay(true)), net(kindOneWay, "is not heard", "temporal-", cutOneWay(false)),
		net(kindOneWay, "hears nothing", "worker-", cutOneWay(true)), net(kindOneWay, "is not heard", "worker-", cutOneWay(false)),
		net(kindLoss, "loses 5 %", "temporal-", c.Lose), net(kindLoss, "loses 5 %", cluster.PostgreSQL, c.Lose), net(kindLoss, "loses 5 %", "worker-", c.Lose),
		net(kindDelay, "200 ms late", "temporal-", c.Delay), net(kindDelay, "200 ms late", "worker-", c.Delay),
		{kindDisk, "disk full", "nats-", s.fillNATS}, net(kindDisk, "disk full", "worker-", c.Fill),
		{kindBuild, "build replaced", allWorkers, s.replaceBuild}, {kindBuild, "build rolled back", allWorkers, s.rollBackBuild},
	}
}

// allWorkers is the host of what is done to all workers.
const allWorkers = "workers"

// faultKinds lists them.
func faultKinds() []string {
	return []string{kindKill, kindFreeze, kindPostgres, kindCut, kindOneWay, kindLoss, kindDelay, kindDisk, kindBuild}
}

// calm is how long a cluster is left alone after a fault, so that its recovery is its own.
const calm = 6 * time.Second

// breakCluster does one thing after the other until its context ends, and returns when all
// is at work again.
func (s *soak) breakCluster(ctx context.Context) {
	random := s.random(streamFaults)
	deck := slices.DeleteFunc(s.clusterDeck(), func(f clusterFault) bool {
		return !slices.Contains(s.kinds, f.kind) || f.kind == kindDelay && !s.cluster.Delays
	})
	for len(deck) > 0 {
		for _, n := range random.Perm(len(deck)) {
			lasting := rand.New(rand.NewPCG(s.seed, random.Uint64()))
			if !wait(ctx, between(random, calm, 2*calm)) {
				return
			}
			f, host := deck[n], allWorkers
			if f.hosts != allWorkers {
				hosts := s.cluster.Hosts(f.hosts)
				host = hosts[lasting.IntN(len(hosts))]
			}
			s.lookForEnded()
			noted := ledger.Fault{Kind: f.name, Target: s.target(host), Host: host, From: ledger.Now()}
			s.say("%s: %s", host, f.name)
			if err := f.do(ctx, host, lasting); err != nil {
				s.fail(fmt.Errorf("%s: %s: %w", host, f.name, err))
				return
			}
			noted.To = ledger.Now()
			s.write(s.faults, noted)
		}
	}
}

// target is what a fault of a host may keep attempts from being reported to: that of a
// network is over when its clients are connected again, which is as of a server.
func (s *soak) target(host string) string {
	switch {
	case host == cluster.PostgreSQL, strings.HasPrefix(host, "temporal-"), strings.HasPrefix(host, "worker-"):
		return ledger.StackTarget
	}
	return host
}

// lookForEnded finds workers that have ended by themselves, which none should.
func (s *soak) lookForEnded() {
	for _, w := range s.workers {
		if state := w.process.State(); state != "running" {
			s.trouble("worker %s had ended by itself: %s", w.id(), state)
			if err := s.startWorker(w); err != nil {
				s.fail(err)
			}
		}
	}
}

// worker gives the worker of a host, nil of another.
func (s *soak) worker(host string) *worker {
	if n := slices.IndexFunc(s.workers, func(w *worker) bool { return w.name == host }); n >= 0 {
		return s.workers[n]
	}
	return nil
}

func (s *soak) killHost(ctx context.Context, host string, random *rand.Rand) error {
	absence := between(random, 0, longestAbsence)
	if w := s.worker(host); w != nil {
		w.process.Kill()
		wait(ctx, absence)
		return s.startWorker(w)
	}
	s.cluster.Kill(host)
	wait(ctx, absence)
	return s.cluster.Begin(host)
}

func (s *soak) freezeHost(ctx context.Context, host string, random *rand.Rand) error {
	length := between(random, 5*time.Second, longestFreeze)
	if w := s.worker(host); w != nil {
		s.thaw(ctx, w.process, length)
		return nil
	}
	s.cluster.Freeze(host)
	wait(ctx, length)
	s.cluster.Thaw(host)
	return nil
}

// fillNATS fills the disk of a node, empties it, and starts the node again, as JetStream
// stays off after a write that failed.
func (s *soak) fillNATS(ctx context.Context, host string, random *rand.Rand) error {
	restore, err := s.cluster.Fill(host)
	if err != nil {
		return err
	}
	wait(ctx, between(random, 5*time.Second, longestFreeze))
	if err := restore(); err != nil {
		return err
	}
	s.cluster.Kill(host)
	return s.cluster.Begin(host)
}

// buildTime is how long a build may hold its runs: the longest take ten seconds, and more
// where attempts fail.
const buildTime = 3 * time.Minute

// beside starts workers of a new build beside those that there are, which it gives.
func (s *soak) beside() (old []worker, err error) {
	s.builds++
	for _, w := range s.workers {
		old = append(old, *w)
		w.build = buildName(s.builds)
		if err := s.startWorker(w); err != nil {
			return nil, err
		}
	}
	s.deploy("promote", buildName(s.builds))
	return old, nil
}

// deploy gives a command of deployments until it is done.
func (s *soak) deploy(args ...string) {
	s.patiently("starter deploy "+args[0], func() error {
		_, err := s.starter(s.ctx, 0, append([]string{"deploy"}, args...)...)
		return err
	})
}

// leave stops the workers of a build when they may be stopped.
func (s *soak) leave(build string, workers []worker) {
	ctx, cancel := context.WithTimeout(s.ctx, buildTime)
	defer cancel()
	why := "it is not in the list"
	for {
		told, err := told[jobsv1.GetDeploymentResponse](s.starter(s.ctx, 0, "deploy", "status"))
		if err != nil {
			why = err.Error()
		}
		for _, b := range told.GetDeployment().GetBuilds() {
			if b.GetId() == build {
				why = b.GetHeld()
			}
		}
		if why == "" {
			break
		}
		if !wait(ctx, lookAgain) {
			if s.ctx.Err() == nil {
				s.trouble("the workers of %s cannot be stopped after %s: %s", build, buildTime, why)
			}
			break
		}
	}
	for _, w := range workers {
		if !w.process.Stop(stopGrace) {
			s.trouble("worker %s did not end within %s of SIGTERM", w.id(), stopGrace)
		}
	}
}

// replaceBuild has a new build take the place of the present one.
func (s *soak) replaceBuild(_ context.Context, _ string, _ *rand.Rand) error {
	build := s.workers[0].build
	old, err := s.beside()
	if err != nil {
		return err
	}
	s.leave(build, old)
	return nil
}

// rollBackBuild has a new build take all runs for some seconds, and then the present one
// again.
func (s *soak) rollBackBuild(ctx context.Context, _ string, random *rand.Rand) error {
	old, err := s.beside()
	if err != nil {
		return err
	}
	wait(ctx, between(random, 5*time.Second, longestFreeze))
	if _, err := s.starter(s.ctx, 0, "deploy", "rollback"); err != nil {
		s.deploy("promote", old[0].build) // A second rollback may undo the first.
	}
	var young []worker
	for n, w := range s.workers {
		young = append(young, *w)
		w.process, w.build, w.started = old[n].process, old[n].build, old[n].started
	}
	s.leave(buildName(s.builds), young)
	return nil
}
