package runlogs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Line is a line of a log.
type Line struct {
	Time    time.Time
	Level   string
	Message string
	// Attributes are the others of the line, as JSON.
	Attributes map[string]json.RawMessage
	// Sequence grows from line to line. 0 of a line that was not read from a log.
	Sequence uint64
}

// Lines that a worker writes into the log of a run, beside those of the handler.
const (
	AttemptBegan = "attempt began"
	AttemptEnded = "attempt ended"
)

// Keys of a line.
const (
	keyTime    = "time"
	keyLevel   = "level"
	keyMessage = "msg"
)

// UnmarshalJSON implements json.Unmarshaler.
func (l *Line) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	err := errors.Join(
		json.Unmarshal(all[keyTime], &l.Time), json.Unmarshal(all[keyLevel], &l.Level), json.Unmarshal(all[keyMessage], &l.Message))
	for _, key := range []string{keyTime, keyLevel, keyMessage} {
		delete(all, key)
	}
	l.Attributes = all
	return err
}

// MarshalJSON implements json.Marshaler. Attributes come last, by their names.
func (l Line) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	write := func(key string, value any) error {
		text, err := json.Marshal(value)
		if err == nil {
			fmt.Fprintf(&b, ",%q:%s", key, text)
		}
		return err
	}
	err := errors.Join(write(keyTime, l.Time), write(keyLevel, l.Level), write(keyMessage, l.Message))
	for _, name := range slices.Sorted(maps.Keys(l.Attributes)) {
		err = errors.Join(err, write(name, l.Attributes[name]))
	}
	b.WriteByte('}')
	text := b.Bytes()
	text[0] = '{'
	return text, err
}

// followWait is how often a log that is followed is asked whether its run has ended.
const followWait = 500 * time.Millisecond

// MaxAge is how long lines are kept.
func MaxAge(ctx context.Context, client *pipeline.Client) (time.Duration, error) {
	stream, err := client.JetStream().Stream(ctx, pipeline.StreamRunLogs)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", client.Address(), err)
	}
	return stream.CachedInfo().Config.MaxAge, nil
}

// Read gives each line of a log after a sequence to show, the oldest first, until there are no
// more. With ended it goes on until that reports that the run has ended and all its lines are
// shown. It makes no stream.
func Read(ctx context.Context, client *pipeline.Client, name Name, after uint64, ended func(context.Context) (bool, error), show func(Line) error) error {
	failed := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return job.Fail(errclass.PipelineUnreachable, "%s: read the log of %s: %w", client.Address(), name.JobID, err)
	}
	if err := client.Reach(ctx); err != nil {
		return fmt.Errorf("the logs of runs are in NATS: %w", err)
	}
	last := ended == nil
	stream, err := client.JetStream().Stream(ctx, pipeline.StreamRunLogs)
	for errors.Is(err, jetstream.ErrStreamNotFound) { // No worker has kept a line.
		if last {
			return nil
		}
		if last, err = ended(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(followWait):
		case <-ctx.Done():
			return ctx.Err()
		}
		stream, err = client.JetStream().Stream(ctx, pipeline.StreamRunLogs)
	}
	if err != nil {
		return failed(err)
	}
	config := jetstream.OrderedConsumerConfig{FilterSubjects: []string{name.subject()}}
	if after > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, after+1
	}
	consumer, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return failed(err)
	}
	for {
		fetch := consumer.FetchNoWait
		if !last {
			fetch = func(n int) (jetstream.MessageBatch, error) {
				return consumer.Fetch(n, jetstream.FetchMaxWait(followWait))
			}
		}
		batch, err := fetch(pipeline.MaxRunLogLines)
		if err != nil {
			return failed(err)
		}
		none := true
		for message := range batch.Messages() {
			none = false
			var line Line
			if json.Unmarshal(message.Data(), &line) != nil {
				line = Line{Level: "INFO", Message: string(message.Data())} // one that was cut
			}
			if about, err := message.Metadata(); err == nil {
				line.Sequence = about.Sequence.Stream
			}
			if err := show(line); err != nil {
				return err
			}
		}
		switch err := batch.Error(); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, jetstream.ErrNoMessages):
			return failed(err)
		case last && none:
			return nil
		case !last && none:
			if last, err = ended(ctx); err != nil {
				return err
			}
		}
	}
}
