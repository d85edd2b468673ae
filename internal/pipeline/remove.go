package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// RawMessages counts the raw messages of an organization by subject; see [ErrNoStream].
func (c *Client) RawMessages(ctx context.Context, organization string) (map[string]uint64, error) {
	if err := CheckToken("organization", organization); err != nil {
		return nil, err
	}
	stream, err := c.existing(ctx, StreamRaw)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(strings.Join([]string{rawRoot, "*", organization, "*"}, ".")))
	if err != nil {
		return nil, c.failed(ctx, "count messages of stream "+StreamRaw, err)
	}
	return info.State.Subjects, nil
}

// LastOn is the number of the last message on a subject, 0 if there is none.
func (c *Client) LastOn(ctx context.Context, stream, subject string) (uint64, error) {
	s, err := c.existing(ctx, stream)
	if err != nil {
		return 0, err
	}
	message, err := s.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, c.failed(ctx, "look at the last message on "+subject, err)
	}
	return message.Sequence, nil
}

// PurgeSubject removes all messages on one subject from a stream. The subject has no
// wildcards.
func (c *Client) PurgeSubject(ctx context.Context, stream, subject string) error {
	if strings.ContainsAny(subject, "*>") {
		return job.Fail(errclass.InvalidSpec, "subject %s has wildcards", subject)
	}
	s, err := c.existing(ctx, stream)
	if err != nil {
		return err
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return c.failed(ctx, fmt.Sprintf("purge %s from stream %s", subject, stream), err)
	}
	return nil
}

// RemoveMessage removes a message from a stream. It is no error if there is none.
func (c *Client) RemoveMessage(ctx context.Context, stream string, sequence uint64) error {
	s, err := c.existing(ctx, stream)
	if err != nil {
		return err
	}
	_, err = c.remove(ctx, s, sequence)
	return err
}

// RemoveConsumer removes a durable consumer. It is no error if there is none.
func (c *Client) RemoveConsumer(ctx context.Context, stream, name string) error {
	if err := c.Reach(ctx); err != nil {
		return err
	}
	if err := c.js.DeleteConsumer(ctx, stream, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return c.failed(ctx, fmt.Sprintf("remove consumer %s of stream %s", name, stream), err)
	}
	return nil
}

// BookmarkKeys lists the keys of all bookmarks.
func (c *Client) BookmarkKeys(ctx context.Context) ([]string, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	bucket, err := c.js.KeyValue(ctx, BucketBookmarks)
	if err != nil {
		return nil, c.failed(ctx, "open bucket "+BucketBookmarks, err)
	}
	lister, err := bucket.ListKeys(ctx)
	if err != nil {
		return nil, c.failed(ctx, "list bucket "+BucketBookmarks, err)
	}
	var keys []string
	for key := range lister.Keys() {
		keys = append(keys, key)
	}
	return keys, ctx.Err()
}

// RemoveBookmark removes a bookmark with its history. A mark that the key is gone stays: a
// server that is killed right after may have earlier values again, and they do not count.
func (c *Client) RemoveBookmark(ctx context.Context, key string) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	bucket, err := c.js.KeyValue(ctx, BucketBookmarks)
	if err == nil {
		err = bucket.Purge(ctx, key)
	}
	if err != nil {
		return c.failed(ctx, "remove "+key+" of bucket "+BucketBookmarks, err)
	}
	return nil
}

// OrganizationOf is the slug in the context of a message, "" if it has none.
func OrganizationOf(body []byte) string {
	var message struct {
		Context struct {
			OrgSlug string `json:"org_slug"`
		} `json:"context"`
	}
	if json.Unmarshal(body, &message) != nil {
		return ""
	}
	return message.Context.OrgSlug
}

// PreparedSubjects and LoadItemSubjects match all prepared messages, and all items in
// quarantine that a database refused.
const (
	PreparedSubjects = prepRoot + ".>"
	LoadItemSubjects = quarantineRoot + "." + string(StageLoad) + ".>"
)

// Each shows visit the messages of a stream on the subjects that a filter takes, in their
// order, up to those there are at the beginning. A stream that is not there has none.
func (c *Client) Each(ctx context.Context, stream, subjects string, visit func(Stored) error) error {
	what := "read stream " + stream
	s, err := c.existing(ctx, stream)
	if errors.Is(err, ErrNoStream) {
		return nil
	}
	if err != nil {
		return err
	}
	consumer, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: subjects, AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute, MemoryStorage: true,
	})
	if err != nil {
		return c.failed(ctx, what, err)
	}
	// One that stays is removed by the server.
	defer func() { _ = s.DeleteConsumer(context.WithoutCancel(ctx), consumer.CachedInfo().Name) }()
	delivered, until := uint64(0), s.CachedInfo().State.LastSeq
	for pending := consumer.CachedInfo().NumPending; pending > 0; {
		batch, err := consumer.Fetch(int(min(rangeFetch, pending)), jetstream.FetchMaxWait(publishTimeout))
		if err != nil {
			return c.failed(ctx, what, err)
		}
		before := delivered
		for message := range batch.Messages() {
			meta, err := message.Metadata()
			if err != nil {
				return c.failed(ctx, what, err)
			}
			// Nothing is acknowledged: what is lost on the way would be missing.
			if delivered++; meta.Sequence.Consumer != delivered {
				return job.Fail(errclass.PipelineUnreachable, "%s: %s: a message was lost on the way", c.address, what)
			}
			if pending = meta.NumPending; meta.Sequence.Stream > until {
				return nil
			}
			stored, err := StoredMessage(message)
			if err == nil {
				err = visit(stored)
			}
			if err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if delivered == before {
			// What was left was removed, or the server does not answer.
			info, err := consumer.Info(ctx)
			if err != nil {
				return c.failed(ctx, what, err)
			}
			if pending = info.NumPending; pending > 0 {
				return job.Fail(errclass.PipelineUnreachable, "%s: %s: no answer within %s", c.address, what, publishTimeout)
			}
		}
	}
	return nil
}
