package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// fill waits for the first snapshot, and for one that has all outcomes.
func (v *viewing) fill(ctx context.Context, f *overviewFigures, o overviewOptions) error {
	begin := time.Now()
	for {
		got, err := v.api.Overview.GetOverview(ctx, &jobsv1.GetOverviewRequest{})
		if err != nil {
			return err
		}
		if f.first == 0 {
			f.first = time.Since(begin)
		}
		whole := 0
		for _, j := range got.GetOverview().GetJobs() {
			if len(j.GetOutcomes()) >= o.runs {
				whole++
			}
		}
		if whole >= o.jobs {
			f.whole, f.wholeCalls = time.Since(begin), v.calls.Load()
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return err
		}
	}
}

// sizes measures the answer of GetOverview.
func (v *viewing) sizes(ctx context.Context, f *overviewFigures) error {
	got, err := v.api.Overview.GetOverview(ctx, &jobsv1.GetOverviewRequest{})
	if err != nil {
		return err
	}
	text, err := protojson.Marshal(got)
	if err != nil {
		return err
	}
	wire, err := proto.Marshal(got)
	if err != nil {
		return err
	}
	f.json, f.proto = len(text), len(wire)
	if f.jsonGzip, err = zipped(text); err != nil {
		return err
	}
	f.protoZip, err = zipped(wire)
	return err
}

// zipped is the size of what is compressed as HTTP does.
func zipped(content []byte) (int, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		return 0, err
	}
	err := w.Close()
	return out.Len(), err
}

// watch has many follow the grid, counts the calls, and measures how soon changes show.
func (v *viewing) watch(ctx context.Context, f *overviewFigures, address string, o overviewOptions) error {
	watching, stop := context.WithCancel(ctx)
	var bytes atomic.Int64
	var ended []<-chan struct{}
	defer func() {
		stop()
		for _, one := range ended {
			<-one
		}
	}()
	for range o.viewers {
		one, err := follow(watching, address, func(n int) { bytes.Add(int64(n)) })
		if err != nil {
			return err
		}
		ended = append(ended, one)
	}
	rate := func(do func() error) (float64, error) {
		begin, before := time.Now(), v.calls.Load()
		err := do()
		return float64(v.calls.Load()-before) / time.Since(begin).Seconds(), err
	}
	var err error
	if f.calls, err = rate(func() error { return sleepUntil(ctx, time.Now().Add(o.watch)) }); err != nil {
		return err
	}
	begin, before := time.Now(), bytes.Load()
	f.busyCalls, err = rate(func() error { return v.changes(watching, f, o) })
	f.page.streamed = int64(float64(bytes.Load()-before) / time.Since(begin).Seconds() / float64(o.viewers))
	return err
}

// changes pauses jobs and starts runs, and measures the time from before the call to the
// message that has it.
func (v *viewing) changes(ctx context.Context, f *overviewFigures, o overviewOptions) error {
	stream, err := v.api.Overview.WatchOverview(ctx, &jobsv1.WatchOverviewRequest{})
	if err != nil {
		return err
	}
	messages := make(chan *jobsv1.WatchOverviewResponse, 1)
	go func() {
		defer close(messages)
		for {
			message, err := stream.Receive()
			if err != nil {
				return
			}
			messages <- message
		}
	}()
	until := func(begin time.Time, shown func(*jobsv1.JobOverview) bool, id string) (time.Duration, error) {
		for message := range messages {
			for _, j := range message.GetOverview().GetJobs() {
				if j.GetId() == id && shown(j) {
					return time.Since(begin), nil
				}
			}
		}
		return 0, fmt.Errorf("the stream ended before %s was shown", id)
	}
	// Lists are read each second. A change that is made as soon as the one before shows would wait
	// for a whole second each time.
	random := rand.New(rand.NewPCG(1, 3)) //nolint:gosec // Nothing secret.
	wait := func() error { return sleepUntil(ctx, time.Now().Add(time.Duration(random.Int64N(int64(time.Second))))) }
	for n := range o.changes {
		id := job.ID(benchType, gridKey(n))
		if err := wait(); err != nil {
			return err
		}
		begin := time.Now()
		if _, err := v.api.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: id}); err != nil {
			return err
		}
		took, err := until(begin, func(j *jobsv1.JobOverview) bool { return j.GetLastStartTime().AsTime().After(begin) }, id)
		if err != nil {
			return err
		}
		f.started = append(f.started, took)
		if err := wait(); err != nil {
			return err
		}
		begin = time.Now()
		if _, err := v.api.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: id}); err != nil {
			return err
		}
		took, err = until(begin, func(j *jobsv1.JobOverview) bool { return j.GetStatus() == jobsv1.JobStatus_JOB_STATUS_PAUSED }, id)
		if err != nil {
			return err
		}
		f.paused = append(f.paused, took)
	}
	return nil
}

func (f *overviewFigures) write(out io.Writer, o overviewOptions) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) // Flush has the error.
	}
	line("jobs x runs", "%d x %d", o.jobs, o.runs)
	line("first snapshot", "%s", roundedTime(f.first))
	line("all outcomes", "%s, %d calls of Temporal", roundedTime(f.whole), f.wholeCalls)
	line("GetOverview as JSON, compressed", "%d kB, %d kB", f.json/1000, f.jsonGzip/1000)
	line("the same as protobuf, compressed", "%d kB, %d kB", f.proto/1000, f.protoZip/1000)
	line("calls a second, viewers", "%.2f, %d", f.calls, o.viewers)
	line("calls a second while jobs change", "%.2f", f.busyCalls)
	line("a new run shows after", "%s", spread(f.started))
	line("a pause shows after", "%s", spread(f.paused))
	line("the grid, compressed", "%d kB, %d kB", f.page.plain/1000, f.page.gzip/1000)
	line("its answer", "%s", spread(f.page.answered))
	line("events of a viewer while jobs change", "%d bytes/s", f.page.streamed)
	if f.page.browser != "" {
		line("first paint, frames", "not measured: %s", f.page.browser)
	} else {
		line("first paint", "%s", spread(f.page.grid.painted))
		line("that of an empty view", "%s", spread(f.page.empty.painted))
		line("frames while scrolling", "%s", spread(f.page.grid.frames))
		line("those of an empty view", "%s", spread(f.page.empty.frames))
		line("the browser's script, elements", "%s, %d", f.page.heap, f.page.elements)
	}
	line("memory of the process", "%s", f.memory)
	line("load average", "%s", f.load)
	return t.Flush()
}
