package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

const archiveJobs = `
[jobs.post_to_archive.main]
continuous = { interval = "PT1S" }
[jobs.post_to_archive.main.spec]
flush_age = "PT2S"
`

// archiveBench measures how fast the load worker archives a backlog: bin/load
// with the job's own settings, on a stack of its own for each round. A message
// counts when it is acknowledged, which it is when its batch is in the store.
func archiveBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench archive", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the binaries devstack, load and starter")
	messages := fs.Int("messages", 500_000, "raw messages, of four organizations; those of the first batch are not timed")
	rounds := fs.Int("rounds", 3, "rounds; the medians are shown")
	seed := fs.Uint64("seed", 1, "seed of what the messages say")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *messages < 200_000 || *rounds < 1 || fs.NArg() > 0 {
		return errors.New("bench archive takes --messages of at least 200000, --rounds of at least 1, and no arguments")
	}
	folder, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	var samples []sample
	var life archive.IncarnationReport
	var memory mebibytes
	for round := range *rounds {
		var s sample
		if s, life, memory, err = measureArchive(ctx, folder, *messages, *seed); err != nil {
			return err
		}
		samples = append(samples, s)
		_, _ = fmt.Fprintf(out, "  round %d  %8.0f messages/s\n", round+1, s.PerSecond)
	}
	rate := median(samples, func(s sample) float64 { return s.PerSecond })
	line := float64(life.Bytes) / float64(life.Messages)
	_, err = fmt.Fprintf(out, "\n| messages/s | MB/s of lines | bytes of a line | bytes in the store | ratio | objects | peak memory of the worker |\n|---|---|---|---|---|---|---|\n"+
		"| %.0f | %.0f | %.0f | %.0f | %.1f | %d and %d records | %s |\n",
		rate, rate*line/1e6, line, float64(life.Size)/float64(life.Messages), float64(life.Bytes)/float64(life.Size), life.Objects, life.Batches, memory)
	return err
}

// measureArchive runs a round.
func measureArchive(ctx context.Context, bin string, messages int, seed uint64) (s sample, life archive.IncarnationReport, memory mebibytes, err error) {
	start, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	info, servers, err := stack.Launch(start, filepath.Join(bin, "devstack"), []string{"--ephemeral", "--free-ports"}, io.Discard)
	if err != nil {
		return s, life, memory, err
	}
	defer servers.Stop(stack.StopGrace)
	client, err := pipeline.Connect(start, info.NATS)
	if err != nil {
		return s, life, memory, err
	}
	defer client.Close()
	if err := publishRecords(start, client, messages, seed); err != nil {
		return s, life, memory, err
	}
	worker, err := stack.Command{
		Path: filepath.Join(bin, "load"), Args: []string{"--log-level", "error"},
		Env: append(os.Environ(), info.Env()...), Stdout: io.Discard, Stderr: io.Discard,
	}.Start()
	if err != nil {
		return s, life, memory, err
	}
	defer worker.Kill()
	if err := applyJobs(start, bin, info, archiveJobs); err != nil {
		return s, life, memory, err
	}
	floor := func() (int, error) {
		states, err := client.ConsumerStates(start, pipeline.StreamRaw)
		for _, c := range states {
			return int(c.AckFloor), err
		}
		return 0, err
	}
	before, began, done := 0, time.Time{}, 0
	for done < messages {
		if err := pause(start, 5*time.Millisecond); err != nil {
			return s, life, memory, err
		}
		if done, err = floor(); err != nil {
			return s, life, memory, err
		}
		if before == 0 && done > 0 {
			before, began = done, time.Now()
		}
	}
	s.PerSecond = float64(messages-before) / time.Since(began).Seconds()

	if memory, err = peakMemory(worker.PID()); err != nil {
		return s, life, memory, err
	}

	store, err := objects.New(objects.Config{
		AccessKey: info.S3.AccessKey, Endpoint: info.S3.Endpoint, Region: info.S3.Region, SecretKey: info.S3.SecretKey,
	})
	if err != nil {
		return s, life, memory, err
	}
	report, err := archive.Archive{Store: store, Bucket: archive.DefaultBucket}.Audit(ctx, archive.AuditOptions{Deep: true, Stream: client})
	if err != nil {
		return s, life, memory, err
	}
	if !report.Clean() || len(report.Incarnations) != 1 || report.Incarnations[0].Messages != int64(messages) {
		return s, life, memory, fmt.Errorf("%d messages are archived, and the audit finds %v", messages, report.Findings)
	}
	return s, report.Incarnations[0], memory, nil
}

// publishRecords puts records of data loggers with eight values on the stream.
func publishRecords(ctx context.Context, client *pipeline.Client, n int, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"BattV_Min", "AT_C_Avg", "RH_Pct_Avg", "WS_ms_S_WVT", "WD_Deg_D1_WVT", "SlrW_Avg", "Rain_mm_Tot", "PTemp_C"}
	values := make([]float64, len(names))
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for i := 0; i < n; {
		chunk := make([]pipeline.Outgoing, 0, 10_000)
		for ; i < n && len(chunk) < cap(chunk); i++ {
			organization := fmt.Sprintf("org%d", i%4)
			record := ldmp.Record{Number: int64(i), Station: fmt.Sprintf("station_%d", i%40), Table: "TenMin", Time: at.Add(time.Duration(i) * time.Second).Format("2006-01-02T15:04:05")}
			for f, name := range names {
				values[f] += random.NormFloat64() / 10
				record.Fields = append(record.Fields, ldmp.Field{Name: name, Type: "xsd:float", Value: fmt.Sprintf("%.3f", values[f])})
			}
			body, err := pipeline.Message[ldmp.Record]{
				Context: pipeline.Context{ImportedAt: at, OrgSlug: organization, Source: "csi", Station: record.Station, Table: record.Table, UTCOffset: "-08:00"},
				Payload: record,
			}.Encode()
			if err != nil {
				return err
			}
			chunk = append(chunk, pipeline.Outgoing{
				Subject: pipeline.RawSubject(pipeline.OperationLive, organization, "csi"), ID: pipeline.ID(string(body)), Body: body,
			})
		}
		if _, err := client.Publish(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}
