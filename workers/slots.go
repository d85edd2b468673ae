package workers

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// slots are the handlers that may run at once in this process, whichever of its
// task queues their runs come from.
//
// The SDK takes a slot before it asks for work. One request for each task queue
// may be under way as long as a slot is free, so that no queue starves another;
// requests for several queues that are answered at once can take one slot more
// than there are.
type slots struct {
	limit int

	mu      sync.Mutex
	changed chan struct{} // closed at every change
	used    int
	asking  int // requests for work under way
}

func newSlots(limit int) *slots { return &slots{limit: limit, changed: make(chan struct{})} }

// keep holds one more slot in use until it is given back: a handler goes on whose
// run was given up.
func (s *slots) keep() (giveBack func()) {
	s.add(1)
	return func() { s.add(-1) }
}

func (s *slots) add(used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used += used
	s.notify()
}

// notify wakes those who wait for a change.
func (s *slots) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// tuner gives the slots to the activities of one task queue.
func (s *slots) tuner() (worker.WorkerTuner, error) {
	fixed, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{})
	return tuner{fixed, &queueSlots{slots: s}}, err
}

type tuner struct {
	worker.WorkerTuner
	activities worker.SlotSupplier
}

func (t tuner) GetActivityTaskSlotSupplier() worker.SlotSupplier { return t.activities }

// queueSlots are the slots as the SDK's worker of one task queue sees them.
type queueSlots struct {
	*slots
	own int // requests of this queue under way
}

// permit is the state of a slot that was given out.
type permit struct{ used bool }

// ReserveSlot implements worker.SlotSupplier.
func (q *queueSlots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		given, changed := q.reserve()
		if given != nil {
			return given, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot implements worker.SlotSupplier.
func (q *queueSlots) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit {
	given, _ := q.reserve()
	return given
}

// reserve gives a permit, or a channel that is closed at the next change.
func (q *queueSlots) reserve() (*worker.SlotPermit, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+q.asking >= q.limit && (q.used >= q.limit || q.own > 0) {
		return nil, q.changed
	}
	q.asking++
	q.own++
	return &worker.SlotPermit{UserData: &permit{}}, nil
}

// MarkSlotUsed implements worker.SlotSupplier.
func (q *queueSlots) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	q.change(info.Permit(), func(p *permit) {
		p.used = true
		q.asking--
		q.own--
		q.used++
	})
}

// ReleaseSlot implements worker.SlotSupplier.
func (q *queueSlots) ReleaseSlot(info worker.SlotReleaseInfo) {
	q.change(info.Permit(), func(p *permit) {
		if p.used {
			q.used--
			return
		}
		q.asking--
		q.own--
	})
}

func (q *queueSlots) change(given *worker.SlotPermit, do func(*permit)) {
	p, ok := given.UserData.(*permit)
	if !ok {
		return // Not one of ours.
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	do(p)
	q.notify()
}

// MaxSlots implements worker.SlotSupplier.
func (q *queueSlots) MaxSlots() int { return q.limit }
