package readmodel

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// readLoads asks NATS for the loads.
func (r *Reader) readLoads(ctx context.Context) error {
	loads, err := r.Pipeline.Loads(ctx)
	if err != nil && !errors.Is(err, pipeline.ErrNoStream) {
		return err //nolint:wrapcheck // It says what it did.
	}
	list := make([]*jobsv1.Load, 0, len(loads))
	now := time.Now()
	for _, load := range loads {
		list = append(list, LoadMessage(load, now))
	}
	slices.SortFunc(list, func(a, b *jobsv1.Load) int { return strings.Compare(LoadName(a), LoadName(b)) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.loads = list
	return nil
}
