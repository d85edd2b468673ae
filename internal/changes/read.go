package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const (
	// window is how many changes are looked at at a time, the latest first.
	window = 200
	// mostWindows bounds what one call looks at.
	mostWindows = 100
)

// Query says which changes are meant.
type Query struct {
	// Subjects are those of objects. None means all changes.
	Subjects []string
	// Before is the number that the changes come before, 0 for the end.
	Before uint64
	// Fits reports whether a change is meant.
	Fits func(Record) bool
	// Size is how many are read.
	Size int
}

// Read gives changes, the latest first, and the number before which the list goes on: 0 at its
// end. A server without the stream has none.
func Read(ctx context.Context, client *pipeline.Client, q Query) (found []Record, next uint64, err error) {
	state, err := client.StreamState(ctx, pipeline.StreamChanges)
	if errors.Is(err, pipeline.ErrNoStream) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the history of changes is in NATS: %w", err)
	}
	last, step := state.Last, uint64(window)
	if q.Before > 0 {
		last = min(last, q.Before-1)
	}
	if len(q.Subjects) > 0 {
		step = max(last, 1) // An object has few.
	}
	for range mostWindows {
		if last < state.First || last == 0 {
			return found, 0, nil
		}
		first := max(state.First, 1)
		if last-first >= step {
			first = last - step + 1
		}
		messages, _, err := client.Range(ctx, pipeline.StreamChanges, first, last, pipeline.Limit{}, q.Subjects...)
		if err != nil {
			return nil, 0, err
		}
		for _, message := range slices.Backward(messages) {
			record := Record{}
			if json.Unmarshal(message.Body, &record) != nil {
				continue // It is of a later version.
			}
			if record.ID = message.Sequence; !q.Fits(record) {
				continue
			}
			if len(found) == q.Size {
				return found, found[len(found)-1].ID, nil
			}
			found = append(found, record)
		}
		last = first - 1
	}
	return found, last + 1, nil
}
