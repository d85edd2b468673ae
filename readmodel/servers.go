package readmodel

import (
	"context"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// checkTimeout bounds the check of a server.
const checkTimeout = 3 * time.Second

// Names of servers.
const (
	temporalServer = "temporal"
	natsServer     = "nats"
	platformServer = "platform"
	storeServer    = "s3"
)

// readServers checks the servers. That one is down is no error of the reader.
func (r *Reader) readServers(ctx context.Context) error {
	servers := []Server{{temporalServer, r.address, func(ctx context.Context) error {
		_, err := r.client.Temporal().CheckHealth(ctx, &sdk.CheckHealthRequest{})
		return err //nolint:wrapcheck // It is shown as it is.
	}}}
	if r.Pipeline != nil {
		servers = append(servers, Server{natsServer, r.Pipeline.Address(), func(ctx context.Context) error {
			_, err := r.Pipeline.Ping(ctx)
			return err //nolint:wrapcheck // It is shown as it is.
		}})
	}
	servers = append(servers, r.Servers...)
	var wait sync.WaitGroup
	for _, server := range servers {
		wait.Go(func() { r.check(ctx, server) })
	}
	wait.Wait()
	return nil
}

func (r *Reader) check(ctx context.Context, server Server) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	ctx, reading := newReading(ctx, r.limiter)
	begin := time.Now()
	err := server.Check(ctx)
	r.setHealth(server.Name, server.Address, err, time.Since(begin)-time.Duration(reading.waited.Load()))
}

// setHealth notes how a server has answered. Latency is kept as long as it is about the
// same: it would be a change each time.
func (r *Reader) setHealth(name, address string, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.state.servers[name]
	next := &jobsv1.ServerHealth{Name: name, Address: address, Up: err == nil, Latency: durationpb.New(rounded(took))}
	if err != nil {
		next.ErrorMessage, next.Latency = oneLine(err), nil
	}
	if next.SinceTime = timestamppb.Now(); known != nil && known.GetUp() == next.GetUp() {
		next.SinceTime = known.GetSinceTime()
	}
	if !proto.Equal(known, next) {
		r.state.servers[name] = next
	}
}

// rounded is a duration as a power of two milliseconds, which rarely changes.
func rounded(d time.Duration) time.Duration {
	for at := time.Millisecond; ; at *= 2 {
		if d <= at {
			return at
		}
	}
}
