package archive

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/job"
)

const rawSubject = "dendra.raw.v1.live.a.csi"

func numbersOf[M interface {
	*pipeline.Delivery | pipeline.Stored
}](messages []M) []uint64 {
	var numbers []uint64
	for _, message := range messages {
		switch m := any(message).(type) {
		case *pipeline.Delivery:
			numbers = append(numbers, m.Sequence)
		case pipeline.Stored:
			numbers = append(numbers, m.Sequence)
		}
	}
	return numbers
}

// newTestBuffer has the bounds of a spec, and otherwise none that a test reaches.
func newTestBuffer(spec PostSpec) *buffer {
	spec.FlushAge = cmp.Or(spec.FlushAge, job.Duration(time.Hour))
	spec.FlushBytes = cmp.Or(spec.FlushBytes, 1<<30)
	spec.FlushMessages = cmp.Or(spec.FlushMessages, 1000)
	return newBuffer(spec)
}

// TestBufferGivesBackEachDelivery: what came twice is archived once and acknowledged
// twice; what was archived before is given back at once.
func TestBufferGivesBackEachDelivery(t *testing.T) {
	t.Parallel()
	source := pipelinetest.NewSource(rawSubject, time.Now(), "1", "2", "3", "4", "5", "6")
	m := source.Messages()
	b := newTestBuffer(PostSpec{})
	require.Equal(t, []uint64{1, 2}, numbersOf(b.add(m[:4], 3)))
	require.Empty(t, b.add(m[3:6], 3))
	require.EqualValues(t, 6, b.last())
	_, _, holes := b.holes(3, 6)
	require.False(t, holes)
	require.Equal(t, []uint64{3, 4, 5}, numbersOf(b.upTo(5)))
	require.Equal(t, []uint64{3, 4, 4}, numbersOf(b.drop(4)))
	require.Equal(t, []uint64{5, 6}, numbersOf(b.upTo(9)))
	require.Equal(t, []uint64{5, 6}, numbersOf(b.drop(9)))
	require.True(t, b.empty())
}

func TestHolesOfABuffer(t *testing.T) {
	t.Parallel()
	m := pipelinetest.NewSource(rawSubject, time.Now(), "1", "2", "3", "4", "5", "6", "7").Messages()
	b := newTestBuffer(PostSpec{})
	b.add([]*pipeline.Delivery{m[1], m[3], m[6]}, 1)
	from, to, holes := b.holes(1, 7)
	require.True(t, holes)
	require.Equal(t, []uint64{1, 6}, []uint64{from, to})
	from, to, holes = b.holes(2, 7)
	require.True(t, holes)
	require.Equal(t, []uint64{3, 6}, []uint64{from, to})
	b.keep(m[2].Stored) // read from the stream: nobody waits for an answer
	require.Equal(t, []uint64{2, 4}, numbersOf(b.drop(4)))
}

// TestBufferIsFull by any of its limits.
func TestBufferIsFull(t *testing.T) {
	t.Parallel()
	m := pipelinetest.NewSource(rawSubject, time.Now(), "1", "2", "3").Messages()
	for name, spec := range map[string]PostSpec{
		"messages": {FlushMessages: 3},
		"bytes":    {FlushBytes: 3 * (lineOverhead + 1)},
	} {
		b := newTestBuffer(spec)
		b.add(m[:2], 1)
		require.False(t, b.full(), name)
		b.add(m[1:2], 1)
		require.False(t, b.full(), "%s: a repeat does not count", name)
		b.add(m[2:], 1)
		require.True(t, b.full(), name)
	}
}

// TestBufferIsDue when its oldest message has waited for long enough, on the clock of
// the stream, which may be wrong.
func TestBufferIsDue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored time.Duration // before now
		due    time.Duration // from now
	}{
		"a new message":             {0, time.Minute},
		"one that has waited":       {40 * time.Second, 20 * time.Second},
		"one of a backlog":          {time.Hour, minAge},
		"one of a clock in advance": {-time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newTestBuffer(PostSpec{FlushAge: job.Duration(time.Minute)})
				require.False(t, b.due(), "an empty one is never due")
				require.Equal(t, fetchWait, b.wait(time.Now().Add(time.Hour)))
				b.add(pipelinetest.NewSource(rawSubject, time.Now().Add(-c.stored), "1").Messages(), 1)
				require.Equal(t, min(fetchWait, c.due), b.wait(time.Now()), "also after the deadline")
				<-time.After(c.due - time.Nanosecond)
				require.False(t, b.due())
				require.Equal(t, fetchMinWait, b.wait(time.Now()))
				<-time.After(time.Nanosecond)
				require.True(t, b.due())
			})
		})
	}
}
