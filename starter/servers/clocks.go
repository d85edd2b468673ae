package servers

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// clock is what a server's clock has shown, between two times of our own.
type clock struct {
	server       string
	shown        time.Time
	asked, heard time.Time
	wholeSeconds bool
}

// off is how far the clock is ahead of ours, as far as that is certain.
func (c clock) off() time.Duration {
	latest := c.shown
	if c.wholeSeconds {
		latest = latest.Add(time.Second)
	}
	switch {
	case latest.Before(c.asked):
		return latest.Sub(c.asked)
	case c.shown.After(c.heard):
		return c.shown.Sub(c.heard)
	}
	return 0
}

// mostOff is how far clocks may be apart. Leases do not depend on clocks; times in lists
// and starts do.
const mostOff = 2 * time.Second

// addTime notes what a server's clock shows, now and since it was asked.
func (l *look) addTime(server string, shown, asked time.Time) {
	l.add(clock{server: server, shown: shown, asked: asked, heard: time.Now()})
}

func (l *look) add(c clock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = append(l.times, c)
}

// httpTimeout bounds a request that asks for the time.
const httpTimeout = 5 * time.Second

// noteTime notes the time that an HTTP server gives, if it does.
func (l *look) noteTime(ctx context.Context, server, url string) {
	_, _ = l.timeOf(ctx, server, url) // Its own check says what is wrong with it.
}

// timeOf notes the time that an HTTP server gives with any answer, and returns the
// header of that.
func (l *look) timeOf(ctx context.Context, server, url string) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close() // Nobody reads it.
	if shown, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		l.add(clock{server: server, shown: shown, asked: asked, heard: time.Now(), wholeSeconds: true})
	}
	return response.Header, nil
}

// temporalTime reads the clock of Temporal: when it saw us ask for a task, of a queue
// that nobody else has.
func (l *look) temporalTime(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	queue := &taskqueuepb.TaskQueue{Name: "starter-doctor/" + rand.Text()}
	service := l.client.WorkflowService()
	asked := time.Now()
	go func() {
		_, _ = service.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{ // Ends with ctx.
			Namespace: l.namespace.Name, TaskQueue: queue, Identity: "starter doctor",
		})
	}()
	looks := time.NewTicker(50 * time.Millisecond)
	defer looks.Stop()
	for {
		found, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: l.namespace.Name, TaskQueue: queue, TaskQueueType: activityQueue,
		})
		if err == nil && len(found.GetPollers()) > 0 {
			l.addTime("temporal", found.GetPollers()[0].GetLastAccessTime().AsTime(), asked)
			return
		}
		select {
		case <-looks.C:
		case <-ctx.Done():
			return
		}
	}
}

// clocks compares the clocks of the servers with ours.
func (l *look) clocks(ctx context.Context) []Result {
	if l.client != nil && l.namespace.Name != "" {
		l.temporalTime(ctx)
	}
	if len(l.times) == 0 {
		return []Result{unset("time", "no server told its time")}
	}
	slices.SortFunc(l.times, func(a, b clock) int { return strings.Compare(a.server, b.server) })
	var names []string
	var results []Result
	for _, c := range l.times {
		off := c.off().Round(100 * time.Millisecond)
		if off.Abs() > mostOff {
			way := "ahead of"
			if off < 0 {
				way = "behind"
			}
			results = append(results, wrong("time", fmt.Sprintf("%s is %s %s this machine", c.server, off.Abs(), way), "set both clocks by NTP"))
			continue
		}
		names = append(names, c.server)
	}
	if len(names) > 0 {
		results = append(results, ok("time", fmt.Sprintf("within %s: %s", mostOff, strings.Join(names, ", "))))
	}
	return results
}
