package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/workflows"
)

// spread is the median and the maximum of some durations.
func spread(took []time.Duration) string {
	if len(took) == 0 {
		return "–"
	}
	slices.Sort(took)
	return fmt.Sprintf("%s (median of %d), at most %s", took[len(took)/2].Round(time.Millisecond), len(took), took[len(took)-1].Round(time.Millisecond))
}

// memory says how much memory each process has had at most.
func (b *queueBench) memory() error {
	for _, process := range []struct {
		name string
		pid  int
	}{{"servers", b.process.PID()}, {"worker", b.worker.Process.Pid}, {"producer", os.Getpid()}} {
		peak, err := peakMemory(process.pid)
		if err != nil {
			return err
		}
		b.say("  peak memory of the %s: %s", process.name, peak)
	}
	return nil
}

// peakMemory is the high-water mark of a process's resident memory, as Linux
// writes it in /proc/PID/status.
func peakMemory(pid int) (string, error) { return memoryOf(pid, "VmHWM:") }

// residentMemory is a process's resident memory at this moment.
func residentMemory(pid int) (string, error) { return memoryOf(pid, "VmRSS:") }

func memoryOf(pid int, what string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, what); ok {
			var kib int
			if _, err := fmt.Sscan(value, &kib); err != nil {
				return "", err
			}
			return fmt.Sprintf("%d MiB", kib/1024), nil
		}
	}
	return "", fmt.Errorf("/proc/%d/status has no %s", pid, what)
}

// processorTime is what a process has used of the processors, as Linux writes it in
// /proc/PID/stat in hundredths of a second; 0 when it is gone.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// footprint is what the histories of a kind of workflow come to.
type footprint struct {
	runs, events, bytes, payload int
	payloadOf                    string
}

// histories reads all histories of the queue and its pages.
func (b *queueBench) histories(ctx context.Context) error {
	for _, workflowType := range []string{workflows.JobQueueType, workflows.JobQueuePageType} {
		all, err := b.footprintOf(ctx, fmt.Sprintf("WorkflowType = '%s' AND JobQueue = '%s'", workflowType, deepQueue))
		if err != nil {
			return err
		}
		b.say("%s: %d runs, longest history %d events, largest %d KiB, largest payload %d KiB (%s)",
			workflowType, all.runs, all.events, all.bytes>>10, all.payload>>10, all.payloadOf)
	}
	return nil
}

func (b *queueBench) footprintOf(ctx context.Context, query string) (footprint, error) {
	var all footprint
	var token []byte
	for {
		page, err := b.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: b.info.Namespace, Query: query, NextPageToken: token,
		})
		if err != nil {
			return all, err
		}
		for _, info := range page.GetExecutions() {
			if err := b.addHistory(ctx, info.GetExecution(), &all); err != nil {
				return all, err
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return all, nil
		}
	}
}

func (b *queueBench) addHistory(ctx context.Context, execution *common.WorkflowExecution, all *footprint) error {
	events, bytes := 0, 0
	list := b.client.GetWorkflowHistory(ctx, execution.GetWorkflowId(), execution.GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for list.HasNext() {
		event, err := list.Next()
		if err != nil {
			return err
		}
		events++
		bytes += event.Size()
		if err := largestPayload(ctx, event, all); err != nil {
			return err
		}
	}
	all.runs++
	all.events, all.bytes = max(all.events, events), max(all.bytes, bytes)
	return nil
}

// largestPayload notes the largest payload of an event.
func largestPayload(ctx context.Context, event *history.HistoryEvent, all *footprint) error {
	return proxy.VisitPayloads(ctx, event, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*common.Payload) ([]*common.Payload, error) {
			for _, payload := range payloads {
				if size := payload.Size(); size > all.payload {
					all.payload, all.payloadOf = size, event.GetEventType().String()
				}
			}
			return payloads, nil
		},
	})
}
