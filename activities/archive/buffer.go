package archive

import (
	"maps"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// buffer is what waits to be archived.
type buffer struct {
	spec PostSpec
	// messages as the stream holds them, by their numbers, and as they were
	// delivered, to be acknowledged: one that was delivered twice, twice.
	messages  map[uint64]pipeline.Stored
	delivered map[uint64][]*pipeline.Delivery

	bytes      int64
	since      time.Time // when the first one was buffered
	oldest     time.Time // when the stream took it
	partitions map[string]bool
}

func newBuffer(spec PostSpec) *buffer {
	g := &buffer{spec: spec}
	g.reset()
	return g
}

func (g *buffer) reset() {
	g.messages, g.delivered, g.partitions = map[uint64]pipeline.Stored{}, map[uint64][]*pipeline.Delivery{}, map[string]bool{}
	g.bytes, g.since, g.oldest = 0, time.Time{}, time.Time{}
}

func (g *buffer) empty() bool { return len(g.messages) == 0 }

// lineOverhead is about what a line has beside the body, in bytes.
const lineOverhead = 200

// add takes messages, and gives back those with numbers before next.
func (g *buffer) add(fetched []*pipeline.Delivery, next uint64) (old []*pipeline.Delivery) {
	for _, message := range fetched {
		if message.Sequence < next {
			old = append(old, message)
			continue
		}
		g.keep(message.Stored)
		g.delivered[message.Sequence] = append(g.delivered[message.Sequence], message)
	}
	return old
}

func (g *buffer) keep(stored pipeline.Stored) {
	if _, found := g.messages[stored.Sequence]; found {
		return
	}
	if g.empty() {
		g.since, g.oldest = time.Now(), stored.Time
	}
	g.messages[stored.Sequence] = stored
	g.bytes += int64(len(stored.Body) + lineOverhead)
	g.partitions[stored.Subject+stored.Time.UTC().Format("2006010215")] = true
}

// full reports whether there is enough for a batch.
func (g *buffer) full() bool {
	return g.bytes >= g.spec.FlushBytes || len(g.messages) >= g.spec.FlushMessages || len(g.partitions) >= maxPartitions
}

// deadline is when the oldest has waited for long enough.
func (g *buffer) deadline() time.Time {
	age := g.spec.FlushAge.Std()
	waited := g.oldest.Add(age) // on the stream's clock
	if latest := g.since.Add(age); waited.After(latest) {
		waited = latest
	}
	if earliest := g.since.Add(min(age, minAge)); waited.Before(earliest) {
		waited = earliest
	}
	return waited
}

// due reports whether there is something, and that it has waited for long enough.
func (g *buffer) due() bool { return !g.empty() && !time.Now().Before(g.deadline()) }

// wait is how long more messages may be waited for. Those of a backlog are all old
// enough, and yet should come in large batches.
func (g *buffer) wait(end time.Time) time.Duration {
	if g.empty() {
		return min(fetchWait, time.Until(end))
	}
	return min(fetchWait, max(fetchMinWait, time.Until(g.deadline())))
}

// last is the greatest number.
func (g *buffer) last() uint64 { return slices.Max(slices.Collect(maps.Keys(g.messages))) }

// holes are the ends of the range of numbers from first to last that are missing;
// false if none is.
func (g *buffer) holes(first, last uint64) (from, to uint64, found bool) {
	if uint64(len(g.messages)) == last-first+1 {
		return 0, 0, false
	}
	for from = first; g.has(from); from++ {
	}
	for to = last; g.has(to); to-- {
	}
	return from, to, true
}

func (g *buffer) has(number uint64) bool {
	_, found := g.messages[number]
	return found
}

// upTo are the messages with numbers up to last, in their order.
func (g *buffer) upTo(last uint64) []pipeline.Stored {
	list := make([]pipeline.Stored, 0, len(g.messages))
	for _, number := range slices.Sorted(maps.Keys(g.messages)) {
		if number <= last {
			list = append(list, g.messages[number])
		}
	}
	return list
}

// drop forgets the messages with numbers up to last, and returns their
// deliveries in order.
func (g *buffer) drop(last uint64) []*pipeline.Delivery {
	rest := newBuffer(g.spec)
	var done []*pipeline.Delivery
	for _, number := range slices.Sorted(maps.Keys(g.messages)) {
		if number > last {
			rest.keep(g.messages[number])
			if deliveries, found := g.delivered[number]; found {
				rest.delivered[number] = deliveries
			}
			continue
		}
		done = append(done, g.delivered[number]...)
	}
	*g = *rest
	return done
}
