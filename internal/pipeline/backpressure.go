package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// backlogShare: an eighth of a stream is what a consumer may have ahead of it before those
	// who can wait publish no more.
	backlogShare = 8
	// backlogLooks is how often consumers are looked at while that much is published.
	backlogLooks = 16
	// BacklogWait is how long those who wait do until they look again.
	BacklogWait = 500 * time.Millisecond
)

// sent is what a series has published since its consumers were looked at last.
type sent struct {
	streams map[string]string // by subject
	bytes   int64
	room    int64 // how many bytes have room before the consumers are looked at again
}

func (s *sent) note(message Outgoing, ack Ack) {
	if ack.Duplicate {
		return
	}
	s.streams[message.Subject] = ack.Stream
	s.bytes += int64(len(message.Body))
}

// Behind says which consumer of what the series publishes is so far behind that the series
// should publish no more, "" if none is. A stream that is full drops its oldest messages, taken
// or not: an import or a replay of more than a stream holds would lose some. A consumer is
// behind when what it has not acknowledged is over an eighth of what the stream may hold, with
// messages of the mean size. Subjects without a consumer always have room.
func (s *Series) Behind(ctx context.Context) (string, error) {
	if s.sent.bytes <= s.sent.room {
		return "", nil
	}
	subjects := map[string][]string{}
	for subject, stream := range s.sent.streams {
		subjects[stream] = append(subjects[stream], subject)
	}
	room := int64(0)
	for stream, subjects := range subjects {
		behind, limit, err := s.client.behind(ctx, stream, subjects)
		if err != nil || behind != "" {
			return behind, err
		}
		if room == 0 || limit < room {
			room = limit
		}
	}
	s.sent = sent{streams: s.sent.streams, room: room / backlogLooks}
	return "", nil
}

// Wait has a run wait while [Series.Behind] says so, which its progress tells, and returns
// [job.ErrStopped] when the run is to stop. Done is how much of its work the run has done.
func (s *Series) Wait(ctx context.Context, run job.Run, done int64) error {
	for {
		behind, err := s.Behind(ctx)
		if err != nil || behind == "" {
			return err
		}
		run.Checkpoint(job.Progress{Done: done, Message: "waits for " + behind}, nil)
		select {
		case <-time.After(BacklogWait):
		case <-run.Stopping():
			return job.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// behind looks at the consumers of subjects of a stream. Limit is how many bytes one of them
// may have ahead of it, more than any stream has if there is no bound.
func (c *Client) behind(ctx context.Context, name string, subjects []string) (behind string, limit int64, err error) {
	stream, err := c.existing(ctx, name)
	if err != nil {
		return "", 0, err
	}
	info := stream.CachedInfo()
	if info.Config.MaxBytes <= 0 || info.State.Msgs == 0 {
		return "", 1 << 62, nil
	}
	limit = info.Config.MaxBytes / backlogShare
	consumers, err := c.consumers(ctx, stream)
	if err != nil {
		return "", 0, err
	}
	mean := float64(info.State.Bytes) / float64(info.State.Msgs)
	for _, consumer := range consumers {
		if consumer.takesAny(subjects) && float64(consumer.Pending)*mean > float64(limit) {
			return fmt.Sprintf("consumer %s of stream %s, which is %d messages behind", consumer.Name, name, consumer.Pending), limit, nil
		}
	}
	return "", limit, nil
}

// takesAny reports whether a consumer consumes one of subjects, which have no wildcards.
func (s ConsumerState) takesAny(subjects []string) bool {
	for _, subject := range subjects {
		root, wild := strings.CutSuffix(s.Subject, ">")
		if s.Subject == subject || (wild && strings.HasPrefix(subject, root)) {
			return true
		}
	}
	return false
}
