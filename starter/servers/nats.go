package servers

import (
	"context"
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// nats looks at the NATS server, its streams and buckets.
func (l *look) nats(ctx context.Context) []Result {
	c, err := l.connectNATS(ctx)
	if err != nil {
		return []Result{wrong("address", err.Error(), "correct the setting")}
	}
	defer c.Close()
	s, err := c.Look(ctx)
	if err != nil {
		return []Result{wrong("address", err.Error(), "start NATS, or set "+pipeline.EnvURL+" or --nats")}
	}
	if !s.Time.IsZero() {
		l.addTime("nats", s.Time, s.Asked)
	}
	address := ok("address", c.Address())
	if s.TooOld != nil {
		return []Result{address, wrong("version", s.TooOld.Error(), "upgrade it: extract, prepare, load and archive jobs fail until then")}
	}
	results := []Result{address, ok("version", s.Version)}
	if s.JetStream != nil {
		return append(results, wrong("jetstream", s.JetStream.Error(), "turn JetStream on: nats-server --jetstream"))
	}
	return append(results, ok("jetstream", "on"), streams(s), replicas(s, c.Replicas()))
}

func streams(s pipeline.Server) Result {
	const check = "streams"
	var missing []string
	for _, state := range s.Streams {
		switch {
		case state.Missing():
			missing = append(missing, state.Name)
		case state.Err != nil:
			return wrong(check, fmt.Sprintf("%s: %s", state.Name, state.Err), "look at the log of the NATS server")
		}
	}
	if len(missing) > 0 {
		return wrong(check, "missing: "+strings.Join(missing, ", "), setupFirst+", or start a worker")
	}
	return ok(check, fmt.Sprintf("all %d streams and buckets", len(s.Streams)))
}

func replicas(s pipeline.Server, wanted int) Result {
	const check = "replicas"
	var fewer []string
	for _, state := range s.Streams {
		if state.Err == nil && state.Replicas < wanted {
			fewer = append(fewer, state.Stream)
		}
	}
	switch {
	case len(fewer) > 0:
		return wrong(check, fmt.Sprintf("fewer than the %d of %s: %s", wanted, pipeline.EnvReplicas, strings.Join(fewer, ", ")),
			fmt.Sprintf("change each: nats stream edit NAME --replicas %d", wanted))
	case s.Cluster != "" && wanted == 1:
		return wrong(check, fmt.Sprintf("1, on a server of cluster %s: what a server holds is away with it", s.Cluster),
			"set "+pipeline.EnvReplicas+"=3, run starter setup, and edit the streams that are there")
	}
	return ok(check, fmt.Sprint(wanted))
}
