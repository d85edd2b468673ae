package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// overviewOptions are the flags of bench overview.
type overviewOptions struct {
	bin     string
	jobs    int
	runs    int
	worked  int
	viewers int
	changes int
	watch   time.Duration
	// temporal is the address of a stack that has the jobs and their runs already.
	temporal string
}

// overviewBench measures the overview of many jobs, as all who look at it get it.
func overviewBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench overview", flag.ContinueOnError)
	var o overviewOptions
	fs.StringVar(&o.bin, "bin", "bin", "`folder` of the devstack binary")
	fs.IntVar(&o.jobs, "jobs", 1000, "recurring jobs")
	fs.IntVar(&o.runs, "runs", 30, "ended runs of each")
	fs.IntVar(&o.worked, "worked", 6, "how many of them a worker ends; the others are terminated")
	fs.IntVar(&o.viewers, "viewers", 20, "those who watch")
	fs.IntVar(&o.changes, "changes", 20, "changes of each kind, to see how soon they show")
	fs.DurationVar(&o.watch, "watch", time.Minute, "how long calls of Temporal are counted")
	fs.StringVar(&o.temporal, "temporal", "", "`address` of the Temporal of a bench that runs, whose jobs are looked at; \"\" makes them")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || o.jobs < 1 || o.runs < 1 || o.viewers < 1 || o.changes < 1 || o.changes > o.jobs {
		return errors.New("bench overview takes numbers of at least 1, not more changes than jobs, and no arguments")
	}
	f, err := o.measure(ctx, out)
	if err != nil {
		return err
	}
	return f.write(out, o)
}

// gridKey is the key of a job.
func gridKey(n int) string { return fmt.Sprintf("grid-%04d", n) }

// overviewFigures are what bench overview measures.
type overviewFigures struct {
	first, whole    time.Duration // to the first snapshot, and to one with all outcomes
	wholeCalls      int64
	json, jsonGzip  int
	proto, protoZip int
	calls           float64 // a second, while they watch
	busyCalls       float64 // the same while jobs are changed
	paused, started []time.Duration
	load            string
	memory          mebibytes
	page            pageFigures
}

func (o overviewOptions) measure(ctx context.Context, out io.Writer) (f *overviewFigures, err error) {
	b, closeBench, err := o.prepare(ctx, out)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeBench()) }()
	v, err := b.newViewing(ctx)
	if err != nil {
		return nil, err
	}
	defer v.close()
	f = &overviewFigures{}
	if err := v.fill(ctx, f, o); err != nil {
		return nil, err
	}
	if err := v.sizes(ctx, f); err != nil {
		return nil, err
	}
	address, closeServer, err := v.serveGrid(ctx)
	if err != nil {
		return nil, err
	}
	defer closeServer()
	if err := v.page(ctx, &f.page, address); err != nil {
		return nil, err
	}
	if err := v.watch(ctx, f, address, o); err != nil {
		return nil, err
	}
	f.load = loadAverage()
	f.memory, err = residentMemory(os.Getpid())
	return f, err
}

// prepare makes the jobs and their runs, or finds them.
func (o overviewOptions) prepare(ctx context.Context, out io.Writer) (b *jobBench, closeBench func() error, err error) {
	if o.temporal != "" {
		temporal, err := temporalclient.Dial(ctx, temporalclient.Settings{Address: o.temporal})
		if err != nil {
			return nil, nil, err
		}
		info := stack.Info{Temporal: o.temporal, Namespace: "default"}
		b := &jobBench{bench: &bench{client: temporal, info: info}, jobs: client.New(temporal, info.Namespace), out: out}
		return b, func() error { temporal.Close(); return nil }, nil
	}
	if b, err = newJobBench(ctx, o.bin, out); err != nil {
		return nil, nil, err
	}
	return b, b.close, b.make(ctx, o)
}

// make makes jobs and runs of them that have ended.
func (b *jobBench) make(ctx context.Context, o overviewOptions) error {
	jobs := make([]job.Job, o.jobs)
	for n := range jobs {
		// None is due while the bench runs.
		jobs[n] = newJob(gridKey(n), job.Trigger{Recurring: &job.Recurring{
			RecurEvery: job.Duration(time.Hour), StartAt: time.Now().Add(24 * time.Hour).Truncate(time.Second),
		}})
	}
	begin := time.Now()
	if err := b.apply(ctx, jobs); err != nil {
		return err
	}
	b.say("applied %d jobs in %s", len(jobs), time.Since(begin).Round(100*time.Millisecond))
	begin = time.Now()
	if err := b.pastRuns(ctx, jobs, o.runs, o.worked); err != nil {
		return err
	}
	b.say("made %d runs in %s", len(jobs)*o.runs, time.Since(begin).Round(time.Second))
	return nil
}

// viewing is a server of the overview in this process, whose calls are counted.
type viewing struct {
	*jobBench
	api   *api.Clients
	calls atomic.Int64
	close func()
}

func (b *jobBench) newViewing(ctx context.Context) (*viewing, error) {
	v := &viewing{jobBench: b}
	reader, err := readmodel.New(ctx, readmodel.Config{Temporal: temporalclient.Settings{
		Address: b.info.Temporal, Namespace: b.info.Namespace,
		Intercept: func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			v.calls.Add(1)
			return invoke(ctx, method, in, out, conn, options...)
		},
	}})
	if err != nil {
		return nil, err
	}
	reading, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = reader.Run(reading) // It ends when it is told to.
	}()
	v.close = func() {
		stop()
		<-done
	}
	v.api = api.NewInProcess(api.Config{Client: b.jobs, Overview: reader})
	return v, nil
}
