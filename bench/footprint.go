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

	"github.com/dendrascience/dendra-jobs/contract"
)

// spread is the median, the 99th percentile and the maximum of some durations.
func spread(took []time.Duration) string {
	if len(took) == 0 {
		return "–"
	}
	slices.Sort(took)
	at := func(percent int) string { return roundedTime(took[min(len(took)*percent/100, len(took)-1)]) }
	return fmt.Sprintf("median %s, p99 %s, at most %s, of %d", at(50), at(99), at(100), len(took))
}

// mebibytes is an amount of memory.
type mebibytes int

func (m mebibytes) String() string { return fmt.Sprintf("%d MiB", int(m)) }

// peakMemory is the high-water mark of a process's resident memory, as Linux
// writes it in /proc/PID/status.
func peakMemory(pid int) (mebibytes, error) { return memoryOf(pid, "VmHWM:") }

// ownMemory is the peak of what a process has for itself. The pages of files that it has mapped are
// not counted, above all those of its program: other processes of the program share them.
func ownMemory(pid int) (mebibytes, error) {
	peak, err := peakMemory(pid)
	if err != nil {
		return 0, err
	}
	files, err := memoryOf(pid, "RssFile:")
	return peak - files, err
}

// residentMemory is a process's resident memory at this moment.
func residentMemory(pid int) (mebibytes, error) { return memoryOf(pid, "VmRSS:") }

func memoryOf(pid int, what string) (mebibytes, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, what); ok {
			var kib int
			if _, err := fmt.Sscan(value, &kib); err != nil {
				return 0, err
			}
			return mebibytes(kib / 1024), nil
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", pid, what)
}

// footprint is what the histories of a kind of workflow come to.
type footprint struct {
	runs, events, bytes, payload int
	payloadOf                    string
}

// histories reads all histories of the queue and its pages.
func (b *queueBench) histories(ctx context.Context) error {
	for _, workflowType := range []string{contract.JobQueueType, contract.JobQueuePageType} {
		all, err := b.footprintOf(ctx, fmt.Sprintf("WorkflowType = '%s' AND JobQueue = '%s'", workflowType, deepQueue))
		if err != nil {
			return err
		}
		b.found("histories of "+workflowType, "%d runs, the longest of %d events, the largest of %d KiB; largest payload %d KiB (%s)",
			all.runs, all.events, all.bytes>>10, all.payload>>10, all.payloadOf)
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
