package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Bookmark is how far a source was read: everything before its position is
// durably published.
type Bookmark struct {
	Key string
	// Revision is the store's count of changes; 0 means that there is none yet.
	Revision uint64
	Position time.Time
	// State is what the reader needs beside the position, as JSON, if anything.
	State json.RawMessage
	// UpdatedBy is the id of the run that wrote it.
	UpdatedBy string
}

// storedBookmark is the value in the bucket.
type storedBookmark struct {
	Position  time.Time       `json:"position"`
	State     json.RawMessage `json:"state,omitempty"`
	UpdatedBy string          `json:"updated_by,omitempty"`
	UpdatedAt time.Time       `json:"updated_at"`
}

var unsafeKey = regexp.MustCompile(`[^A-Za-z0-9_=-]+`)

// BookmarkKey names the bookmark of a source that a job reads:
// extract_hobo_time_frame.pilot/21234001. Characters that a key cannot have
// become underscores.
func BookmarkKey(jobID, source string) string {
	return jobID + "/" + unsafeKey.ReplaceAllString(source, "_")
}

// Bookmark reads a bookmark; its revision is 0 when there is none.
func (c *Client) Bookmark(ctx context.Context, key string) (Bookmark, error) {
	bookmark := Bookmark{Key: key}
	if err := c.Ready(ctx); err != nil {
		return bookmark, err
	}
	bucket, err := c.js.KeyValue(ctx, BucketBookmarks)
	if err != nil {
		return bookmark, c.failed(ctx, "open bucket "+BucketBookmarks, err)
	}
	entry, err := bucket.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return bookmark, nil
	}
	if err != nil {
		return bookmark, c.failed(ctx, fmt.Sprintf("read bookmark %s/%s", BucketBookmarks, key), err)
	}
	var stored storedBookmark
	if err := json.Unmarshal(entry.Value(), &stored); err != nil || stored.Position.IsZero() {
		return bookmark, job.Fail(errclass.BadBookmark, "bookmark %s/%s on %s, revision %d, cannot be read: %q",
			BucketBookmarks, key, c.address, entry.Revision(), entry.Value())
	}
	bookmark.Revision = entry.Revision()
	bookmark.Position, bookmark.State, bookmark.UpdatedBy = stored.Position, stored.State, stored.UpdatedBy
	return bookmark, nil
}

// Advance moves a bookmark from what was read to a later position, or writes
// another state at the same one, and returns it with its new revision. State is
// anything that JSON can hold, or nil. By is the id of the run.
//
// If another attempt has moved the bookmark since it was read, nothing is
// written and the error is of class [errclass.StaleBookmark]. A position before the
// bookmark's is refused with [errclass.BadBookmark].
func (c *Client) Advance(ctx context.Context, from Bookmark, position time.Time, state any, by string) (Bookmark, error) {
	where := fmt.Sprintf("bookmark %s/%s", BucketBookmarks, from.Key)
	if position.IsZero() || (from.Revision > 0 && position.Before(from.Position)) {
		return from, job.Fail(errclass.BadBookmark, "%s: it would move back from %s to %s",
			where, from.Position.Format(time.RFC3339), position.Format(time.RFC3339))
	}
	return c.putBookmark(ctx, from, position, state, by)
}

// SetBookmark moves a bookmark to any position, also back, and forgets the state beside
// it: a reader begins at the position. From is what was read; if another has moved it
// since, nothing is written and the error is of class [errclass.StaleBookmark].
func (c *Client) SetBookmark(ctx context.Context, from Bookmark, position time.Time, by string) (Bookmark, error) {
	return c.putBookmark(ctx, from, position, nil, by)
}

func (c *Client) putBookmark(ctx context.Context, from Bookmark, position time.Time, state any, by string) (Bookmark, error) {
	where := fmt.Sprintf("bookmark %s/%s", BucketBookmarks, from.Key)
	next := Bookmark{Key: from.Key, Position: position.UTC(), UpdatedBy: by}
	stored := storedBookmark{Position: next.Position, UpdatedBy: by, UpdatedAt: time.Now().UTC()}
	if state != nil {
		text, err := json.Marshal(state)
		if err != nil {
			return from, job.Fail(errclass.BadBookmark, "%s: encode its state: %w", where, err)
		}
		next.State, stored.State = text, text
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return from, job.Fail(errclass.BadBookmark, "%s: encode it: %w", where, err)
	}
	if err := c.Ready(ctx); err != nil {
		return from, err
	}
	bucket, err := c.js.KeyValue(ctx, BucketBookmarks)
	if err != nil {
		return from, c.failed(ctx, "open bucket "+BucketBookmarks, err)
	}
	if from.Revision == 0 {
		next.Revision, err = bucket.Create(ctx, from.Key, value)
	} else {
		next.Revision, err = bucket.Update(ctx, from.Key, value, from.Revision)
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return from, job.Fail(errclass.StaleBookmark,
			"%s on %s was moved by another run since revision %d: this run is stale and wrote nothing",
			where, c.address, from.Revision)
	case err != nil:
		return from, c.failed(ctx, "write "+where, err)
	}
	return next, nil
}

// Bookmarks reads all bookmarks, up to a limit, in no particular order. What cannot be read
// is left out. It makes nothing: without a bucket there are none.
func (c *Client) Bookmarks(ctx context.Context, limit int) ([]Bookmark, error) {
	if err := c.Reach(ctx); err != nil {
		return nil, err
	}
	var list []Bookmark
	for entry, err := range c.Entries(ctx, BucketBookmarks, ">") {
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, c.failed(ctx, "read bucket "+BucketBookmarks, err)
		}
		if len(list) == limit {
			break
		}
		var stored storedBookmark
		if json.Unmarshal(entry.Value(), &stored) != nil || stored.Position.IsZero() {
			continue
		}
		list = append(list, Bookmark{
			Key: entry.Key(), Revision: entry.Revision(), Position: stored.Position, State: stored.State, UpdatedBy: stored.UpdatedBy,
		})
	}
	return list, nil
}
