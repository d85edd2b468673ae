package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// runNews is what has come of a run and was not sent yet.
type runNews struct {
	changed chan struct{} // has one while there is something

	mu    sync.Mutex
	run   bool // the run itself has changed
	lines []*jobsv1.LogLine
}

// add takes a line of the log, or the news that the run has changed.
func (n *runNews) add(line *jobsv1.LogLine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if line == nil {
		n.run = true
	} else {
		n.lines = append(n.lines, line)
		n.lines = n.lines[max(0, len(n.lines)-maxLines):]
	}
	select {
	case n.changed <- struct{}{}:
	default: // The browser has not got the event before this one yet.
	}
}

// take gives what there is, as an event.
func (n *runNews) take() (*event, int64, error) {
	n.mu.Lock()
	run, lines := n.run, n.lines
	n.run, n.lines = false, nil
	n.mu.Unlock()
	made := &event{}
	if run {
		made.Topics = []string{"run"}
	}
	var last int64
	for _, line := range lines {
		row, err := render("log-row", line)
		if err != nil {
			return nil, 0, err
		}
		made.Lines, last = append(made.Lines, string(row)), line.GetSequence()
	}
	return made, last, nil
}

// logMark begins the ids of events of a run. The sequence of the last line follows.
const logMark = "log-"

// followRun sends a sign whenever the run changes, and the lines that its handler logs.
func (p *Page) followRun(r *http.Request, name string, send func(message) bool) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	values := r.URL.Query()
	last, _ := strconv.ParseInt(values.Get("after"), 10, 64) // Without one from the first line on.
	if id, ok := strings.CutPrefix(r.Header.Get("Last-Event-ID"), logMark); ok {
		last, _ = strconv.ParseInt(id, 10, 64)
	}
	news, ended := &runNews{changed: make(chan struct{}, 1)}, make(chan error, 1)
	query := readLogQuery(values)
	go p.followLog(ctx, &jobsv1.WatchRunLogsRequest{Name: name, Level: query.Level, Search: query.Search, After: max(last, 0)}, news)
	go func() { ended <- p.watchRun(ctx, name, news) }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				return err
			}
			ended = nil // The run has ended: browsers need not connect again.
		case <-news.changed:
			made, latest, err := news.take()
			if err != nil {
				return err
			}
			last = max(last, latest)
			if !send(message{logMark + strconv.FormatInt(last, 10), made}) {
				return nil
			}
		}
	}
}

// watchRun tells of each change of a run, until it has ended.
func (p *Page) watchRun(ctx context.Context, name string, news *runNews) error {
	stream, err := p.API.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: name})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // It has ended.
	for first := true; ; first = false {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		if !first { // The first message is the state that the browser has.
			news.add(nil)
		}
	}
}

// followLog tells of each line of the log of a run. Without NATS there is none.
func (p *Page) followLog(ctx context.Context, asked *jobsv1.WatchRunLogsRequest, news *runNews) {
	stream, err := p.API.Runs.WatchRunLogs(ctx, asked)
	if err != nil {
		return
	}
	defer func() { _ = stream.Close() }() // It has ended.
	for {
		answer, err := stream.Receive()
		if err != nil {
			return
		}
		news.add(answer.GetLine())
	}
}
