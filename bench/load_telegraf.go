package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// telegrafWays are Telegraf's nats_consumer and influxdb plugins with their defaults,
// and with the shortest way from one to the other: a batch of as many points as it
// takes without an answer, written at once. Its messages are of one point.
var telegrafWays = []way{
	{name: "Telegraf, its defaults", flush: 10 * time.Second},
	{name: "Telegraf, a flush every 20 ms", flush: 20 * time.Millisecond},
}

const (
	telegrafStream   = "BENCH_TELEGRAF"
	telegrafSubjects = "bench.telegraf."
	// mostByDefault bounds the points for a Telegraf that flushes once in 10 s.
	mostByDefault = 20_000
)

// telegraf loads the same points with Telegraf, which reads line protocol: what it
// parses fastest, and less work than the messages of a station.
type telegraf struct {
	*loader
	path string
}

// findTelegraf looks for the program in the folder of binaries, where make telegraf
// builds it, and on the PATH.
func (b *loader) findTelegraf() (*telegraf, error) {
	path := filepath.Join(b.bin, "telegraf")
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("telegraf"); err != nil {
			return nil, errors.New("there is none on this machine; make telegraf builds it")
		}
	}
	return &telegraf{b, path}, nil
}

func (t *telegraf) load(ctx context.Context, w way, points int) (pace, error) {
	if w.flush >= time.Second {
		points = min(points, mostByDefault)
	}
	name := t.location()
	if err := t.publishLines(ctx, name, points); err != nil {
		return pace{}, err
	}
	dir, err := os.MkdirTemp("", "bench-telegraf-")
	if err != nil {
		return pace{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "telegraf.conf")
	if err := os.WriteFile(file, []byte(t.config(name, w.flush)), 0o600); err != nil {
		return pace{}, err
	}
	process, err := stack.Command{Path: t.path, Args: []string{"--quiet", "--config", file}, Stdout: io.Discard, Stderr: io.Discard}.Start()
	if err != nil {
		return pace{}, err
	}
	defer process.Stop(10 * time.Second)
	ask := func() (*jetstream.ConsumerInfo, error) {
		consumer, err := t.pipeline.JetStream().PushConsumer(ctx, telegrafStream, name)
		if err != nil {
			return nil, err
		}
		return consumer.CachedInfo(), nil
	}
	p, err := t.paceOf(ctx, process, points, 1, ask)
	if err != nil {
		return p, err
	}
	return p, t.check(ctx, name, points)
}

// publishLines puts points into a stream for Telegraf, a line in a message.
func (t *telegraf) publishLines(ctx context.Context, name string, points int) error {
	js := t.pipeline.JetStream()
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: telegrafStream, Subjects: []string{telegrafSubjects + ">"},
		Storage: jetstream.FileStorage, Compression: jetstream.S2Compression, // as those of the pipeline
	}); err != nil {
		return err
	}
	var sent []jetstream.PubAckFuture
	for i := range points {
		p := benchPoint(i)
		line, err := influx.AppendPoint(nil, influx.Point{Measurement: p.Measurement, Fields: p.Fields, Time: p.Time.Time}, influx.Milliseconds)
		if err != nil {
			return err
		}
		line = append(bytes.TrimSuffix(line, []byte{'\n'}), "000000"...) // nanoseconds, which Telegraf expects
		future, err := js.PublishAsync(telegrafSubjects+name, line, jetstream.WithStallWait(time.Minute))
		if err != nil {
			return err
		}
		sent = append(sent, future)
	}
	for _, future := range sent {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// config leaves out what is a default of Telegraf 1.37, but for the time between
// two flushes; the two sizes are named since they count here.
func (t *telegraf) config(name string, flush time.Duration) string {
	return fmt.Sprintf(`[agent]
  flush_interval = %q
  metric_batch_size = 1000
  omit_hostname = true
[[inputs.nats_consumer]]
  servers = [%q]
  subjects = []
  jetstream_subjects = [%q]
  queue_group = %q
  max_undelivered_messages = 1000
  data_format = "influx"
[[outputs.influxdb]]
  urls = [%q]
  database = %q
`, flush, t.info.NATS, telegrafSubjects+name, name, t.info.Influx, name)
}
