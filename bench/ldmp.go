package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// predecessorRate is what the predecessor of this system reads over a connection:
// it waits 400 ms before each acknowledgement.
const predecessorRate = 2.0

// ldmpCase is a way of reading a backlog.
type ldmpCase struct {
	jobs   int // each with a connection of its own
	window int // records that the server sends ahead of their acknowledgement
}

// ldmpBench measures how fast the extract worker takes the backlog of a LoggerNet
// server: bin/extract with a job for each connection, on a stack of its own for
// each case. A record counts when the server has its acknowledgement, and it gets
// that when the stream has the record.
func ldmpBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench ldmp", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the binaries devstack, extract and starter")
	took := fs.Duration("duration", 10*time.Second, "how long each case is measured")
	rounds := fs.Int("rounds", 3, "rounds per case; the medians are shown")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *took < time.Second || *rounds < 1 || fs.NArg() > 0 {
		return errors.New("bench ldmp takes a --duration of at least 1s, --rounds of at least 1, and no arguments")
	}
	folder, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	var table strings.Builder
	table.WriteString("\n| connections | records sent ahead | records/s | of the predecessor's per connection |\n|---|---|---|---|\n")
	for _, c := range []ldmpCase{{1, 1}, {1, 16}, {4, 1}, {4, 16}} {
		var samples []sample
		for round := range *rounds {
			rate, err := c.measure(ctx, folder, *took)
			if err != nil {
				return fmt.Errorf("%d connections, %d ahead: %w", c.jobs, c.window, err)
			}
			samples = append(samples, sample{PerSecond: rate})
			_, _ = fmt.Fprintf(out, "  %d connections, %2d ahead  round %d  %8.0f records/s\n", c.jobs, c.window, round+1, rate)
		}
		rate := median(samples, func(s sample) float64 { return s.PerSecond })
		fmt.Fprintf(&table, "| %d | %d | %.0f | × %.0f |\n", c.jobs, c.window, rate, rate/float64(c.jobs)/predecessorRate)
	}
	_, err = io.WriteString(out, table.String())
	return err
}

// measure runs a case once and gives the records per second.
func (c ldmpCase) measure(ctx context.Context, bin string, took time.Duration) (rate float64, err error) {
	start, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	info, servers, err := stack.Launch(start, filepath.Join(bin, "devstack"), []string{"--ephemeral", "--free-ports"}, io.Discard)
	if err != nil {
		return 0, err
	}
	defer servers.Stop(stack.StopGrace)

	// A backlog that does not end: records of every second since January, in ten
	// tables for each connection.
	now := ldmptest.Since.AddDate(0, 2, 0)
	server := ldmptest.New(ldmptest.Options{
		Now: func() time.Time { return now }, Window: c.window,
		Stations: ldmptest.Stations(10*c.jobs, ldmptest.Table{Name: "OneSec", Interval: time.Second}),
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server.Start(listener, nil)
	defer server.Stop()

	worker, err := stack.Command{
		Path: filepath.Join(bin, "extract"), Args: []string{"--log-level", "error"},
		Env: append(os.Environ(), info.Env()...), Stdout: io.Discard, Stderr: io.Discard,
	}.Start()
	if err != nil {
		return 0, err
	}
	defer worker.Kill()
	if err := c.apply(start, bin, info, listener.Addr().String()); err != nil {
		return 0, err
	}
	acknowledged := func() int64 {
		_, n := server.Total()
		return n
	}
	for acknowledged() < int64(1000*c.jobs) { // connected, and in its stride
		if err := pause(start, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	before, began := acknowledged(), time.Now()
	if err := pause(ctx, took); err != nil {
		return 0, err
	}
	n, elapsed := acknowledged(), time.Since(began)
	return float64(n-before) / elapsed.Seconds(), checkStored(ctx, info, n)
}

// apply declares a job for each connection.
func (c ldmpCase) apply(ctx context.Context, bin string, info stack.Info, server string) error {
	var jobs strings.Builder
	for i := range c.jobs {
		fmt.Fprintf(&jobs, "[jobs.extract_campbell_scientific_ldmp.bench%d]\ncontinuous = { interval = \"PT1S\" }\n", i)
		fmt.Fprintf(&jobs, "[jobs.extract_campbell_scientific_ldmp.bench%d.spec]\nserver = %q\norganization = \"bench\"\nstart_option = \"at-oldest\"\nstations = [\n", i, server)
		for station := 10 * i; station < 10*i+10; station++ {
			fmt.Fprintf(&jobs, "  { station = \"stn_%d\", utc_offset = \"-08:00\", tables = [\"OneSec\"] },\n", station)
		}
		jobs.WriteString("]\n")
	}
	return applyJobs(ctx, bin, info, jobs.String())
}

// applyJobs declares the jobs of a file.
func applyJobs(ctx context.Context, bin string, info stack.Info, jobs string) error {
	dir, err := os.MkdirTemp("", "bench-jobs-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "jobs.toml")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		return err
	}
	return runStarter(ctx, bin, info, "apply", "--yes", "-f", file)
}

// runStarter runs a command of the starter to its end.
func runStarter(ctx context.Context, bin string, info stack.Info, args ...string) error {
	var said strings.Builder
	starter, err := stack.Command{
		Path: filepath.Join(bin, "starter"), Args: args, Env: append(os.Environ(), info.Env()...), Stdout: &said, Stderr: &said,
	}.Start()
	if err != nil {
		return err
	}
	select {
	case <-starter.Done():
	case <-ctx.Done():
		starter.Kill()
	}
	if starter.ExitCode() != 0 {
		return fmt.Errorf("starter %s (%s): %s", args[0], starter.State(), said.String())
	}
	return nil
}

// checkStored makes sure that what was acknowledged is in the stream.
func checkStored(ctx context.Context, info stack.Info, acknowledged int64) error {
	client, err := pipeline.Connect(ctx, info.NATS)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ready(ctx); err != nil {
		return err
	}
	stream, err := client.JetStream().Stream(ctx, pipeline.StreamRaw)
	if err != nil {
		return err
	}
	if stored := stream.CachedInfo().State.Msgs; int64(stored) < acknowledged {
		return fmt.Errorf("%d records were acknowledged and %d are in the stream", acknowledged, stored)
	}
	return nil
}

func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
