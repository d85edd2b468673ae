package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

const loadUsage = "bench load takes --points of at least 100000, --rounds of at least 1, and no arguments"

// loadBench measures how fast the load worker brings points from JetStream into
// InfluxDB: bin/load with one job, against the same points posted to the same server
// from memory, in turns on one stack.
func loadBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench load", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the binaries devstack, load and starter")
	points := fs.Int("points", 500_000, "points in each measurement")
	rounds := fs.Int("rounds", 3, "rounds; the medians are shown")
	stalled := fs.Int("stalled", 0, "instead, let so many `messages` wait for a mirror that never answers, and watch the memory of the worker")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *points < 100_000 || *rounds < 1 || *stalled < 0 || fs.NArg() > 0 {
		return errors.New(loadUsage)
	}
	folder, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	b := &loader{bin: folder, out: out}
	defer b.close()
	if err := b.start(ctx); err != nil {
		return err
	}
	if *stalled > 0 {
		return b.stall(ctx, *stalled)
	}
	return b.compare(ctx, *points, *rounds)
}

// loader is a stack with what posts and loads.
type loader struct {
	bin      string
	out      io.Writer
	info     stack.Info
	servers  *stack.Process
	pipeline *pipeline.Client
	names    int
}

func (b *loader) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	if b.info, b.servers, err = stack.Launch(ctx, filepath.Join(b.bin, "devstack"), []string{"--ephemeral", "--free-ports"}, io.Discard); err != nil {
		return err
	}
	b.pipeline, err = pipeline.Connect(ctx, b.info.NATS)
	return err
}

func (b *loader) close() {
	if b.pipeline != nil {
		b.pipeline.Close()
	}
	if b.servers != nil {
		b.servers.Stop(stack.StopGrace)
	}
}

// location names what nobody has named before.
func (b *loader) location() string {
	b.names++
	return fmt.Sprintf("bench%d", b.names)
}

// way is a way of bringing points into InfluxDB.
type way struct {
	name    string
	perPost int           // points in a write from memory
	posters int           // connections that write from memory at the same time
	per     int           // points in a message
	flush   time.Duration // of Telegraf
}

// pace is what a way came to.
type pace struct{ rate, worker, servers float64 }

func (b *loader) compare(ctx context.Context, points, rounds int) error {
	ways := []way{
		{name: "posted from memory, 5,000 a write", perPost: 5000, posters: 1},
		{name: "posted from memory, 10,000 a write", perPost: 10_000, posters: 1},
		{name: "posted from memory, 20,000 a write", perPost: 20_000, posters: 1},
		{name: "posted over two connections, 5,000 a write", perPost: 5000, posters: 2},
		{name: "posted over two connections, 10,000 a write", perPost: 10_000, posters: 2},
	}
	for _, per := range []int{1, 10, 100} {
		ways = append(ways, way{name: fmt.Sprintf("loaded, %d a message", per), per: per})
	}
	telegraf, err := b.findTelegraf()
	if err != nil {
		fmt.Fprintf(b.out, "  not compared with Telegraf: %v\n", err)
	} else {
		ways = append(ways, telegrafWays...)
	}
	paces := make([][]pace, len(ways))
	for round := range rounds {
		for n := range ways {
			if round%2 == 1 {
				n = len(ways) - 1 - n
			}
			w := ways[n]
			var measure func(context.Context, way, int) (pace, error)
			switch {
			case w.flush > 0:
				measure = telegraf.load
			case w.perPost > 0:
				measure = b.post
			default:
				measure = b.load
			}
			p, err := measure(ctx, w, points)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			paces[n] = append(paces[n], p)
			fmt.Fprintf(b.out, "  %-36s round %d  %8.0f points/s\n", w.name, round+1, p.rate)
		}
	}
	middle := func(n int, value func(pace) float64) float64 {
		samples := make([]sample, len(paces[n]))
		for i, p := range paces[n] {
			samples[i].PerSecond = value(p)
		}
		return median(samples, func(s sample) float64 { return s.PerSecond })
	}
	rate := func(p pace) float64 { return p.rate }
	best := 0.0
	for n, w := range ways {
		if w.perPost > 0 {
			best = max(best, middle(n, rate))
		}
	}
	fmt.Fprint(b.out, "\n| points of 8 fields | points/s | of the best from memory | processor time of the worker | of the servers |\n|---|---|---|---|---|\n")
	for n, w := range ways {
		worker := "–"
		if w.perPost == 0 {
			worker = fmt.Sprintf("%.1f µs/point", middle(n, func(p pace) float64 { return p.worker }))
		}
		fmt.Fprintf(b.out, "| %s | %.0f | %.2f | %s | %.1f µs/point |\n", w.name, middle(n, rate), middle(n, rate)/best, worker,
			middle(n, func(p pace) float64 { return p.servers }))
	}
	return nil
}

// fieldNames are the columns of a table of a data logger.
var fieldNames = []string{"AT_C_Avg", "BattV_Min", "PAR_Avg", "RH_Pct", "Rain_mm_Tot", "Soil_T_C", "WD_Deg", "WS_ms_Avg"}

// benchPoint is the i-th point: twenty stations log every second.
func benchPoint(i int) pipeline.Point {
	fields := make(map[string]any, len(fieldNames))
	for f, name := range fieldNames {
		fields[name] = float64((i*7+f*13)%4000) / 16
	}
	return pipeline.Point{
		Measurement: fmt.Sprintf("station_%d_source_tenmin", i%20), Fields: fields,
		Time: pipeline.Time{Time: time.UnixMilli(1_700_000_000_000 + int64(i/20)*1000)},
	}
}

// post writes points over the connections of a way, on each one write after the
// other.
func (b *loader) post(ctx context.Context, w way, points int) (pace, error) {
	database := b.location()
	writer, err := influx.NewWriter(influx.Config{URL: b.info.Influx})
	if err != nil {
		return pace{}, err
	}
	if err := writer.CreateDatabase(ctx, database); err != nil {
		return pace{}, err
	}
	var bodies [][]byte
	for i := range points {
		if i%w.perPost == 0 {
			bodies = append(bodies, nil)
		}
		p := benchPoint(i)
		body := &bodies[len(bodies)-1]
		if *body, err = influx.AppendPoint(*body, influx.Point{Measurement: p.Measurement, Fields: p.Fields, Time: p.Time.Time}, influx.Milliseconds); err != nil {
			return pace{}, err
		}
	}
	cpu, began := processorTime(b.servers.PID()), time.Now()
	posters, postCtx := errgroup.WithContext(ctx)
	for n := range w.posters {
		posters.Go(func() error {
			for i := n; i < len(bodies); i += w.posters {
				if err := writer.Write(postCtx, influx.Target{Database: database, Precision: influx.Milliseconds}, bodies[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := posters.Wait(); err != nil {
		return pace{}, err
	}
	elapsed := time.Since(began)
	return pace{
		rate:    float64(points) / elapsed.Seconds(),
		servers: float64((processorTime(b.servers.PID()) - cpu).Microseconds()) / float64(points),
	}, b.check(ctx, database, points)
}

// paceOf waits until a process has loaded so many messages, and measures it from the
// second twentieth of them to the last.
func (b *loader) paceOf(ctx context.Context, process *stack.Process, messages, per int, ask func() (*jetstream.ConsumerInfo, error)) (pace, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-process.Done():
			cancel(fmt.Errorf("the process has ended: %s", process.State()))
		case <-ctx.Done():
		}
	}()
	from, err := waitAcknowledged(ctx, messages, messages/20, ask)
	if err != nil {
		return pace{}, err
	}
	cpu, processCPU, began := processorTime(b.servers.PID()), processorTime(process.PID()), time.Now()
	to, err := waitAcknowledged(ctx, messages, messages-messages/20, ask)
	if err != nil {
		return pace{}, err
	}
	elapsed, n := time.Since(began), float64((to-from)*per)
	p := pace{
		rate:    n / elapsed.Seconds(),
		worker:  float64((processorTime(process.PID()) - processCPU).Microseconds()) / n,
		servers: float64((processorTime(b.servers.PID()) - cpu).Microseconds()) / n,
	}
	_, err = waitAcknowledged(ctx, messages, messages, ask)
	return p, err
}

// load publishes points, and measures a worker that loads them.
func (b *loader) load(ctx context.Context, w way, points int) (pace, error) {
	location := b.location()
	if err := b.publish(ctx, location, points, w.per); err != nil {
		return pace{}, err
	}
	worker, err := b.startWorker()
	if err != nil {
		return pace{}, err
	}
	defer worker.Stop(10 * time.Second)
	if err := b.apply(ctx, location, fmt.Sprintf("influx_url = %q\n", b.info.Influx)); err != nil {
		return pace{}, err
	}
	messages := points / w.per
	p, err := b.paceOf(ctx, worker, messages, w.per, b.consumerOf(ctx, location, pipeline.DefaultMirror))
	if err != nil {
		return p, err
	}
	if err := b.stopJob(ctx, location); err != nil {
		return p, err
	}
	return p, b.check(ctx, location, messages*w.per)
}

// publish puts points into the stream, so many in a message.
func (b *loader) publish(ctx context.Context, location string, points, per int) error {
	const window = 10_000
	var outgoing []pipeline.Outgoing
	flush := func() error {
		_, err := b.pipeline.Publish(ctx, outgoing)
		outgoing = outgoing[:0]
		return err
	}
	for i := 0; i+per <= points; i += per {
		message := pipeline.Message[pipeline.Points]{
			Context: pipeline.Context{
				ImportedAt: time.Now().UTC(), OrgSlug: "bench", Source: "csi", Location: location, Station: "station", Table: "TenMin",
			},
			Payload: pipeline.Points{Options: pipeline.PointOptions{Database: location, Precision: "ms"}},
		}
		for j := range per {
			message.Payload.Points = append(message.Payload.Points, benchPoint(i+j))
		}
		body, err := message.Encode()
		if err != nil {
			return err
		}
		outgoing = append(outgoing, pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, location), Body: body})
		if len(outgoing) == window {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (b *loader) startWorker() (*stack.Process, error) {
	return stack.Command{
		Path: filepath.Join(b.bin, "load"), Args: []string{"--log-level", "error"},
		Env: append(os.Environ(), b.info.Env()...), Stdout: io.Discard, Stderr: io.Discard,
	}.Start()
}

// apply declares the job that loads a location.
func (b *loader) apply(ctx context.Context, location, spec string) error {
	job := "[jobs.live_load_influx_v1." + location + "]\ncontinuous = { interval = \"PT0.1S\" }\n" +
		"[jobs.live_load_influx_v1." + location + ".spec]\nlocation = \"" + location + "\"\n" + spec
	return applyJobs(ctx, b.bin, b.info, job)
}

func (b *loader) stopJob(ctx context.Context, location string) error {
	return runStarter(ctx, b.bin, b.info, "jobs", "stop", "--yes", "live_load_influx_v1."+location)
}

// consumerOf asks for the consumer of a location's mirror.
func (b *loader) consumerOf(ctx context.Context, location, mirror string) func() (*jetstream.ConsumerInfo, error) {
	name := pipeline.LoadConsumer(pipeline.OperationLive, location, mirror)
	return func() (*jetstream.ConsumerInfo, error) {
		consumer, err := b.pipeline.JetStream().Consumer(ctx, pipeline.StreamPrepared, name)
		if err != nil {
			return nil, err
		}
		return consumer.CachedInfo(), nil
	}
}

// waitAcknowledged waits until a consumer, which may have to be made yet, has
// acknowledged so many of all the messages for it, and gives how many it has.
func waitAcknowledged(ctx context.Context, all, want int, ask func() (*jetstream.ConsumerInfo, error)) (int, error) {
	for {
		info, err := ask()
		if err == nil {
			if loaded := all - int(info.NumPending) - info.NumAckPending; loaded >= want {
				return loaded, nil
			}
		} else if !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return 0, err
		}
		if pause(ctx, 5*time.Millisecond) != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// check makes sure that a database has all points.
func (b *loader) check(ctx context.Context, database string, points int) error {
	total := int64(0)
	for station := range 20 {
		counts, err := influx.Count(ctx, influx.Config{URL: b.info.Influx}, database, fmt.Sprintf("station_%d_source_tenmin", station))
		if err != nil {
			return err
		}
		total += counts[fieldNames[0]]
	}
	if total != int64(points) {
		return fmt.Errorf("database %s has %d points instead of %d", database, total, points)
	}
	return nil
}
