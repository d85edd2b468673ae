package reversesync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// maxErrors is how many errors of entities a full sync tells.
	maxErrors = 10
	// maxUnavailable is how many entities in a row may find a server away.
	maxUnavailable = 20
)

// failures collects what entities of a full sync failed with.
type failures struct {
	mu          sync.Mutex
	count       int
	texts       []string
	unavailable int // in a row
}

// note takes the outcome of an entity. It returns an error that concerns all entities, so
// that there is no use in going on.
func (f *failures) note(entity string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.unavailable = 0
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, job.ErrStopped) {
		return err
	}
	f.count++
	switch job.KindOf(err) {
	case errclass.Misconfigured:
		return err
	case errclass.Unavailable:
		if f.unavailable++; f.unavailable >= maxUnavailable {
			return err
		}
	default:
		f.unavailable = 0
	}
	if len(f.texts) < maxErrors {
		f.texts = append(f.texts, fmt.Sprintf("%s: %s", entity, err))
	}
	return nil
}

// err is the error of a full sync of so many entities, nil if none failed.
func (f *failures) err(entities int) error {
	if f.count == 0 {
		return nil
	}
	text := strings.Join(f.texts, "; ")
	if more := f.count - len(f.texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return job.Fail(errclass.ReverseSyncFailed, "%d of %d entities failed: %s", f.count, entities, text)
}
