package readmodel

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// maxStations bounds the stations that are shown.
const maxStations = 2000

// readStations asks NATS how far what jobs extract was read.
func (r *Reader) readStations(ctx context.Context) error {
	bookmarks, err := r.Pipeline.Bookmarks(ctx, maxStations)
	if err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := map[string]time.Time{}
	for _, s := range r.state.stations {
		before[s.GetName()] = s.GetLastTime().AsTime()
	}
	var list []*jobsv1.StationOverview
	for _, b := range bookmarks {
		jobID, source, ok := strings.Cut(b.Key, "/")
		if !ok {
			continue
		}
		last, exact := latestRecord(b)
		if known, ok := before[b.Key]; ok && !exact {
			last = known
		}
		list = append(list, &jobsv1.StationOverview{Name: b.Key, JobId: jobID, Source: source, LastTime: timestamppb.New(last)})
	}
	slices.SortFunc(list, func(a, b *jobsv1.StationOverview) int { return strings.Compare(a.GetName(), b.GetName()) })
	r.state.stations = list
	return nil
}

// activeStations are those of jobs that there are.
func (s *state) activeStations() []*jobsv1.StationOverview {
	var list []*jobsv1.StationOverview
	for _, station := range s.stations {
		if j := s.jobs[station.GetJobId()]; j != nil && j.active() {
			list = append(list, station)
		}
	}
	return list
}

// latestRecord is the time of the latest record that a bookmark tells of. One of a reader
// of LoggerNet is at that record. One of a reader of HOBOlink goes on without records, and
// has the hours that it has found some in: if there are none, the latest record is older
// than its position, and it is not exact.
func latestRecord(b pipeline.Bookmark) (at time.Time, exact bool) {
	var state struct {
		Hours *[]byte `json:"hours"`
	}
	if json.Unmarshal(b.State, &state) != nil || state.Hours == nil {
		return b.Position, true
	}
	const size = 16 // of an hour: changes, the hour's start in seconds, and a digest
	latest := uint32(0)
	for packed := *state.Hours; len(packed) >= size; packed = packed[size:] {
		latest = max(latest, binary.BigEndian.Uint32(packed[4:]))
	}
	if latest == 0 {
		return b.Position, false
	}
	return time.Unix(int64(latest), 0), true
}
