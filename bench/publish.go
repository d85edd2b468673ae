package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// publishCase is a way of publishing raw messages.
type publishCase struct {
	publishers int
	batch      int // messages that a publisher has on their way at most
}

// publishBench measures how fast raw messages become durable, with JetStream syncing
// its files now and then or before each acknowledgement. The stacks run side by side
// and get the same work in turns, so that whatever else the machine does hits all.
func publishBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench publish", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the binary devstack")
	took := fs.Duration("duration", 5*time.Second, "how long each case is measured")
	rounds := fs.Int("rounds", 3, "rounds per case; the medians are shown")
	size := fs.Int("size", 1000, "bytes of a message")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *took < time.Second || *rounds < 1 || *size < 16 || fs.NArg() > 0 {
		return errors.New("bench publish takes a --duration of at least 1s, --rounds of at least 1, --size of at least 16, and no arguments")
	}
	syncs := []string{"2m", "1s", "always"}
	var servers []string
	for _, sync := range syncs {
		start, cancel := context.WithTimeout(ctx, time.Minute)
		info, process, err := stack.Launch(start, filepath.Join(*bin, "devstack"),
			[]string{"--ephemeral", "--free-ports", "--nats-sync-interval", sync}, io.Discard)
		cancel()
		if err != nil {
			return err
		}
		defer process.Stop(stack.StopGrace)
		servers = append(servers, info.NATS)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n| messages of %d bytes: publishers, on their way each | sync_interval %s | share of it |\n|---|%s\n",
		*size, strings.Join(syncs, " | "), strings.Repeat("---|", len(syncs)+1))
	for _, c := range []publishCase{{1, 1}, {1, 16}, {1, 256}, {4, 256}} {
		samples := make([][]sample, len(syncs))
		for round := range *rounds {
			for n := range syncs {
				n = (n + round) % len(syncs)
				rate, err := c.measure(ctx, servers[n], *size, *took)
				if err != nil {
					return err
				}
				samples[n] = append(samples[n], sample{PerSecond: rate})
				_, _ = fmt.Fprintf(out, "  %d publishers, %3d on their way  sync %-6s  round %d  %8.0f messages/s\n", c.publishers, c.batch, syncs[n], round+1, rate)
			}
		}
		fmt.Fprintf(&table, "| %d, %d |", c.publishers, c.batch)
		rates := make([]float64, len(syncs))
		for n := range syncs {
			rates[n] = median(samples[n], func(s sample) float64 { return s.PerSecond })
			fmt.Fprintf(&table, " %.0f/s |", rates[n])
		}
		fmt.Fprintf(&table, " %.2f |\n", rates[len(syncs)-1]/rates[0])
	}
	_, err := io.WriteString(out, table.String())
	return err
}

// measure publishes for a while and gives the messages per second that the server
// acknowledged.
func (c publishCase) measure(ctx context.Context, url string, size int, took time.Duration) (float64, error) {
	type outcome struct {
		published int
		err       error
	}
	outcomes := make(chan outcome, c.publishers)
	began := time.Now()
	for range c.publishers {
		go func() {
			n, err := c.publish(ctx, url, size, began.Add(took))
			outcomes <- outcome{n, err}
		}()
	}
	total := 0
	var failed error
	for range c.publishers {
		o := <-outcomes
		total += o.published
		failed = errors.Join(failed, o.err)
	}
	return float64(total) / time.Since(began).Seconds(), failed
}

// publish is one publisher.
func (c publishCase) publish(ctx context.Context, url string, size int, until time.Time) (published int, err error) {
	client, err := pipeline.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	subject := pipeline.RawSubject(pipeline.OperationLive, "bench", "publish")
	messages := make([]pipeline.Outgoing, c.batch)
	for time.Now().Before(until) {
		for i := range messages {
			body := make([]byte, size)
			_, _ = rand.Read(body) // never fails; what repeats would be compressed
			messages[i] = pipeline.Outgoing{Subject: subject, ID: string(hex.AppendEncode(nil, body[:16])), Body: body}
		}
		if _, err := client.Publish(ctx, messages); err != nil {
			return published, err
		}
		published += len(messages)
	}
	return published, nil
}
