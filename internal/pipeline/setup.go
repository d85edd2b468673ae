package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Server is what a NATS server says of itself and of what this package needs there.
type Server struct {
	Version string
	// Cluster is the name of its cluster, "" of a server that is alone.
	Cluster string
	// TooOld is the error of a server that lacks calls of this package.
	TooOld error
	// JetStream is the error of a server or account without JetStream.
	JetStream error
	// Streams are the streams and buckets of this package.
	Streams []NeededStream
	// Time is that of the server's clock when it told of one of them, and Asked when it
	// was asked. Zero if there is none.
	Time, Asked time.Time
}

// NeededStream is a stream of this package, or the stream of a bucket.
type NeededStream struct {
	// Name is that for people: "stream RAW", "bucket rates".
	Name string
	// Stream is that of the server: RAW, KV_rates.
	Stream string
	// Err is why it cannot be used, jetstream.ErrStreamNotFound if there is none.
	Err error
	// Replicas is how many servers hold it.
	Replicas int
}

// Missing reports whether there is no such stream.
func (s NeededStream) Missing() bool { return errors.Is(s.Err, jetstream.ErrStreamNotFound) }

// wanted are the streams and buckets without their states.
func (s StreamSettings) wanted() []NeededStream {
	var list []NeededStream
	for _, config := range s.streams() {
		list = append(list, NeededStream{Name: "stream " + config.Name, Stream: config.Name})
	}
	for _, config := range s.buckets() {
		list = append(list, NeededStream{Name: "bucket " + config.Bucket, Stream: "KV_" + config.Bucket})
	}
	return list
}

// Look asks the server without making anything. The error is that of a server that
// cannot be reached.
func (c *Client) Look(ctx context.Context) (Server, error) {
	if err := c.waitConnected(ctx); err != nil {
		return Server{}, err
	}
	s := Server{Version: c.nc.ConnectedServerVersion(), Cluster: c.nc.ConnectedClusterName(), TooOld: c.checkVersion()}
	if _, s.JetStream = c.js.AccountInfo(ctx); s.JetStream != nil {
		return s, nil //nolint:nilerr // It is part of what the server says.
	}
	s.Streams = c.streams.wanted()
	for i := range s.Streams {
		state := &s.Streams[i]
		asked := time.Now()
		stream, err := c.js.Stream(ctx, state.Stream)
		if state.Err = err; err != nil {
			continue
		}
		info := stream.CachedInfo()
		state.Replicas, s.Time, s.Asked = info.Config.Replicas, info.TimeStamp, asked
	}
	return s, nil
}

// Replicas is how many servers are to hold each stream and bucket.
func (c *Client) Replicas() int { return max(c.streams.Replicas, 1) }

// SetUp makes the streams and buckets that are missing, and gives all with what was made.
// Those that are there stay as they are.
func (c *Client) SetUp(ctx context.Context) (there, made []NeededStream, err error) {
	if err := c.Reach(ctx); err != nil {
		return nil, nil, err
	}
	before, err := c.Look(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case before.JetStream != nil:
		return nil, nil, c.failed(ctx, "ask for JetStream", before.JetStream)
	}
	if err := Ensure(ctx, c.js, c.streams); err != nil {
		return nil, nil, c.failed(ctx, "set up streams", err)
	}
	for _, state := range before.Streams {
		if state.Missing() {
			made = append(made, state)
		} else {
			there = append(there, state)
		}
	}
	return there, made, nil
}
