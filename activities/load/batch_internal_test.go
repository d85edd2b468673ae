package load

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// prepared is a message with a point for each value.
func prepared(precision string, values ...int) string {
	points := ""
	for i, v := range values {
		if i > 0 {
			points += ","
		}
		points += fmt.Sprintf(`{"measurement":"m","fields":{"v":%d},"time":%d}`, v, 1000*v)
	}
	return fmt.Sprintf(`{"context":{},"payload":{"options":{"database":"d","precision":%q},"points":[%s]}}`, precision, points)
}

// writerOf makes a mirror writer that takes messages from memory.
func writerOf(source *pipelinetest.Source, spec LiveInfluxSpec) *mirrorWriter {
	run := jobtest.NewRun(job.Job{ID: "load.memory"})
	spec.BatchPoints = cmp.Or(spec.BatchPoints, 5000)
	l := &iteration{
		Iteration: iterate.New(run, time.Hour, nil), spec: spec,
		over: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	w := newMirrorWriter(l, influx.Mirror{Name: "memory"}, influx.Config{}, "")
	w.consumer = source
	l.writers = []*mirrorWriter{w}
	return w
}

func sequences(b *batch) []uint64 {
	var numbers []uint64
	for i := range b.items {
		numbers = append(numbers, b.items[i].message.Sequence)
	}
	return numbers
}

// TestAcknowledgeUpToTheFirstOpenMessage: an answer counts for all messages before it,
// so one that is done with waits for those before it.
func TestAcknowledgeUpToTheFirstOpenMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open        []int    // points of each message that are not stored
		first, rest []uint64 // acknowledged at first, and when all are stored
	}{
		"all stored":          {[]int{0, 0, 0}, []uint64{3}, []uint64{3}},
		"the last is open":    {[]int{0, 0, 1}, []uint64{2}, []uint64{2, 3}},
		"one between is open": {[]int{0, 2, 0}, []uint64{1}, []uint64{1, 3}},
		"the first is open":   {[]int{1, 0, 0}, nil, []uint64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := pipelinetest.NewSource("prep", time.Now(), prepared("ms", 1), prepared("ms", 2), prepared("ms", 3))
			w := writerOf(source, LiveInfluxSpec{})
			b, decoder := newBatch(w), lines.NewDecoder(lines.Rules{})
			for i, message := range source.Messages() {
				b.add(decoder, message)
				b.items[i].open = c.open[i]
			}
			require.NoError(t, w.acknowledge(t.Context(), b))
			require.Equal(t, c.first, source.Acknowledged())
			for i := range b.items {
				b.items[i].open = 0
			}
			require.NoError(t, w.acknowledge(t.Context(), b))
			require.Equal(t, c.rest, source.Acknowledged())
			require.NoError(t, w.acknowledge(t.Context(), b), "nothing is answered twice")
			require.Equal(t, c.rest, source.Acknowledged())
			require.EqualValues(t, 3, w.iteration.Counted("messages"))
		})
	}
}

func TestAcknowledgementThatIsNotNoted(t *testing.T) {
	t.Parallel()
	source := pipelinetest.NewSource("prep", time.Now(), prepared("ms", 1))
	source.Forgets = true
	w := writerOf(source, LiveInfluxSpec{})
	attempt := func() error {
		b := newBatch(w)
		b.add(lines.NewDecoder(lines.Rules{}), source.Messages()[0])
		b.items[0].open = 0
		return w.acknowledge(t.Context(), b)
	}
	require.ErrorIs(t, attempt(), errAckNotNoted)
	require.ErrorIs(t, attempt(), errAckNotNoted)
	require.Equal(t, 2, w.notNoted)
	require.Zero(t, w.iteration.Counted("messages"))
	source.Forgets = false
	require.NoError(t, attempt())
	require.Zero(t, w.notNoted, "they are counted in a row")
}

// TestBatchesAreFilled with what fetches bring.
func TestBatchesAreFilled(t *testing.T) {
	t.Parallel()
	var bodies []string
	for n := range 7 {
		bodies = append(bodies, prepared("ms", n))
	}
	for name, c := range map[string]struct {
		points, bytes int
		chunks        []int // messages of each fetch; a negative number is of one that may have more
		batches       [][]uint64
	}{
		"what is there goes at once":  {100, 1 << 20, []int{4, 3}, [][]uint64{{1, 2, 3, 4}, {5, 6, 7}}},
		"a full fetch waits for more": {100, 1 << 20, []int{-4, 3}, [][]uint64{{1, 2, 3, 4, 5, 6, 7}}},
		"no more than batch_points":   {3, 1 << 20, []int{-4, 3}, [][]uint64{{1, 2, 3}, {4, 5, 6}, {7}}},
		"no more than batch_bytes":    {100, 1, []int{-3}, [][]uint64{{1}, {2}, {3}}},
		"the end sends what is left":  {100, 1 << 20, []int{-7}, [][]uint64{{1, 2, 3, 4, 5, 6, 7}}},
		"an empty fetch ends a wait":  {100, 1 << 20, []int{-4, 0, -3}, [][]uint64{{1, 2, 3, 4}, {5, 6, 7}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := pipelinetest.NewSource("prep", time.Now(), bodies...)
			w := writerOf(source, LiveInfluxSpec{BatchPoints: c.points, BatchAge: job.Duration(time.Hour)})
			w.maxBytes.Store(int64(c.bytes))
			f := newFetcher(w)
			go f.encode(t.Context())
			go func() {
				defer close(f.chunks)
				for _, n := range c.chunks {
					messages, _ := source.FetchBytes(t.Context(), max(n, -n), 0, 0, nil)
					f.chunks <- chunk{messages, n < 0}
				}
			}()
			var batches [][]uint64
			for b := range f.batches {
				batches = append(batches, sequences(b))
			}
			require.Equal(t, c.batches, batches)
		})
	}
}

// TestGroupsOfABatch: points go together as long as their target is the same; what is
// no prepared message goes to quarantine, and the one to be skipped as well.
func TestGroupsOfABatch(t *testing.T) {
	t.Parallel()
	source := pipelinetest.NewSource("prep", time.Now(),
		prepared("ms", 1, 2), prepared("s", 3), prepared("ms", 4), "none", prepared("ms", 5), prepared("ms", 6))
	b := newBatch(writerOf(source, LiveInfluxSpec{}))
	skipped := source.Messages()[4]
	b.skip = &pipeline.HeldMessage{Subject: skipped.Subject, Sequence: skipped.Sequence, Time: skipped.Time}
	decoder := lines.NewDecoder(lines.Rules{})
	for _, message := range source.Messages() {
		b.add(decoder, message)
	}
	var groups [][]int
	for _, g := range b.groups {
		var items []int
		for _, l := range g.lines {
			items = append(items, l.item)
		}
		groups = append(groups, items)
	}
	require.Equal(t, [][]int{{0, 0}, {1}, {2, 5}}, groups, "a later precision is not written before an earlier one")
	require.Len(t, b.refused, 2)
	require.Equal(t, refusal{item: 3, point: -1, class: errclass.BadMessage, reason: b.refused[0].reason}, b.refused[0])
	require.Equal(t, 4, b.refused[1].item)
	require.Equal(t, errclass.Skipped, b.refused[1].class)
	require.Equal(t, 0, b.finished(), "the first message has open points")
	b.markStored(b.groups[0].lines)
	require.Equal(t, 1, b.finished())
	b.markStored(b.groups[2].lines)
	require.Equal(t, 1, b.finished(), "the second one holds up all after it")
	b.markStored(b.groups[1].lines)
	require.Equal(t, 6, b.finished(), "what is refused counts, once it is in quarantine")
}
