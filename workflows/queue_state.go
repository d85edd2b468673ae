package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// MaxQueueBytes bounds the waiting items that a queue itself holds. The state of
// a queue is the input of its next run, which Temporal limits to 2 MiB.
const MaxQueueBytes = 1 << 20

// MaxQueuePages bounds the parked pages of a queue: with pages of
// [DefaultPaging] and items of usual size, 150,000 items.
const MaxQueuePages = 2000

// Bounds of what a queue keeps to show and to work with.
const (
	recentItems      = 20
	maxDeadLetters   = 100
	maxGoneRanges    = 500
	answeredRequests = 32
)

// QueueState is everything a queue remembers: the input that continue-as-new
// carries on, and the answer to QueryState.
type QueueState struct {
	Name string `json:"name"`
	// Waiting is the head of the queue: the items in the order they will run.
	Waiting []QueueItem `json:"waiting,omitempty"`
	// Tail holds the items that come after the parked pages, in the order they
	// were accepted. It is empty as long as the head has room.
	Tail []QueueItem `json:"tail,omitempty"`
	// WaitingBytes is the size of the specs and options in Waiting and Tail.
	WaitingBytes int `json:"waiting_bytes"`
	// Paging says when items are parked in pages. Without it, as in runs that
	// started before there were pages, all items are in Waiting.
	Paging *Paging `json:"paging,omitempty"`
	// Parked tells of the pages between Waiting and Tail.
	Parked Parked `json:"parked,omitzero"`
	// Running is the item that runs. It is the lock of the queue: nothing else
	// starts before its run has really ended.
	Running *RunningItem `json:"running,omitempty"`
	// Settling is set while the queue waits for the handler of a run that someone
	// terminated to hear of it.
	Settling *Settling `json:"settling,omitempty"`
	// Recent holds the last finished items, oldest first.
	Recent []FinishedItem `json:"recent,omitempty"`
	// Pace counts the items that ran in the last hour.
	Pace Pace `json:"pace,omitzero"`

	// Accepted counts the items ever accepted, and numbers them.
	Accepted int64 `json:"accepted"`
	// Completed, Failed, Canceled and Skipped count how items ended. A skipped
	// item is one whose job had run before. Lost counts items of pages that were
	// deleted by hand, and that someone gave up.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
	Skipped   int64 `json:"skipped"`
	Lost      int64 `json:"lost,omitempty"`

	// DeadLetters are the latest items that failed, oldest first, and
	// DeadDropped counts those that made room for later ones.
	DeadLetters []DeadLetter `json:"dead_letters,omitempty"`
	DeadDropped int64        `json:"dead_dropped,omitempty"`

	Paused      bool   `json:"paused,omitempty"`
	PauseReason string `json:"pause_reason,omitempty"`
	// Draining says that the queue takes no more items, and runs what waits.
	Draining bool `json:"draining,omitempty"`
	// OnFailure is what the failure of an item does whose job does not say it.
	OnFailure job.OnFailure `json:"on_failure,omitempty"`
	// Halted is set while the queue waits for someone to look at a failure.
	Halted *Halt `json:"halted,omitempty"`

	// Answered are the latest requests that put items in.
	Answered []AnsweredRequest `json:"answered,omitempty"`

	// Generation counts the workflow runs, each continued as new.
	Generation int `json:"generation"`
	// SignalsRead counts the signals that this run of the workflow has taken in. Those
	// after them in its history are in no state yet.
	SignalsRead int `json:"signals_read,omitempty"`

	// strict says that the run of the queue began with the rules of strictItemsChange.
	strict bool
}

// QueueItem is a job that waits in a queue.
type QueueItem struct {
	Sequence int64     `json:"sequence"`
	Job      job.Job   `json:"job"`
	Accepted time.Time `json:"accepted"`
	// Again runs the job although it ran before.
	Again bool `json:"again,omitempty"`
	// RequestID names the request that put the item in.
	RequestID string `json:"request_id,omitempty"`
	// RetryOf is the run id of the run that the item is a retry of, and Cursor the
	// position that this one left.
	RetryOf string          `json:"retry_of,omitempty"`
	Cursor  json.RawMessage `json:"cursor,omitempty"`
	// Bytes is the size that the item counts with, if that is more than is estimated
	// of it: its texts have many escapes, or it is bound by many tags.
	Bytes int `json:"bytes,omitempty"`
}

// retry is the item as it is tried again after its run failed, from the position that
// the run left. One that could not even be started, or left none, is tried as it was.
func (i QueueItem) retry(runID string, cursor json.RawMessage) QueueItem {
	if runID != "" {
		i.RetryOf = runID
	}
	if len(cursor) > 0 && len(cursor) <= MaxCursorBytes {
		i.Cursor = cursor
	}
	return i
}

// measured is the item with the size that it counts with in the queue.
func (s *QueueState) measured(item QueueItem) QueueItem {
	item.Bytes = 0
	if size := s.sizeOf(item); size != item.size() {
		item.Bytes = size
	}
	return item
}

// RunningItem is the item that runs.
type RunningItem struct {
	QueueItem
	Started time.Time `json:"started"`
	// RunID is the run id of its RunJob workflow, once that has started.
	RunID string `json:"run_id,omitempty"`
	// Canceled says that someone asked the item to stop, and CancelSent that
	// its run has been told.
	Canceled   bool `json:"canceled,omitempty"`
	CancelSent bool `json:"cancel_sent,omitempty"`
}

// Settling says until when nothing starts, since the handler of a job's run that
// ended without it may still be at work.
type Settling struct {
	JobID string    `json:"job_id"`
	Until time.Time `json:"until"`
}

// ItemStatus says how an item ended.
type ItemStatus string

// The ends of an item.
const (
	ItemCompleted ItemStatus = "completed"
	ItemFailed    ItemStatus = "failed"
	ItemCanceled  ItemStatus = "canceled"
	ItemSkipped   ItemStatus = "skipped" // the job had run before
)

// FinishedItem is an item that has left the queue.
type FinishedItem struct {
	Sequence int64      `json:"sequence"`
	JobID    string     `json:"job_id"`
	Status   ItemStatus `json:"status"`
	Accepted time.Time  `json:"accepted,omitzero"`
	Started  time.Time  `json:"started,omitzero"`
	Ended    time.Time  `json:"ended"`
	RunID    string     `json:"run_id,omitempty"`
	Error    string     `json:"error,omitempty"`
	// RequestID names the request that put the item in.
	RequestID string `json:"request_id,omitempty"`
}

// DeadLetter is an item that failed.
type DeadLetter struct {
	Sequence int64     `json:"sequence"`
	JobID    string    `json:"job_id"`
	Ended    time.Time `json:"ended"`
	Error    string    `json:"error,omitempty"`
	// RunID is its run, whose memo has the definition of the job. An item that
	// could not even be started has none, and carries its Job unless that is too large.
	RunID string   `json:"run_id,omitempty"`
	Job   *job.Job `json:"job,omitempty"`
	// JobBytes is the size of Job.
	JobBytes int `json:"job_bytes,omitempty"`
	// SpecHash is that of the job.
	SpecHash string `json:"spec_hash,omitempty"`
}

// size is that of the definition that the letter carries.
func (l *DeadLetter) size() int {
	switch {
	case l.Job == nil:
		return 0
	case l.JobBytes > 0:
		return l.JobBytes
	}
	return QueueItem{Job: *l.Job}.estimate() // Of an earlier release.
}

// retriedBy says that an item makes the letter obsolete: it is a retry of the same
// job with the same spec.
func (l *DeadLetter) retriedBy(item EnqueueItem) bool {
	if item.RetryOf == "" || l.JobID != item.Job.ID {
		return false
	}
	hash, err := item.Job.SpecHash()
	return l.RunID == item.RetryOf || err == nil && l.SpecHash == hash
}

// Halt is why a queue waits for someone to resume it or to skip what failed:
// an item that failed, or a page that is not there any more.
type Halt struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
	// Item is the one that failed, as it is tried again, and RunID its run.
	Item  *QueueItem `json:"item,omitempty"`
	RunID string     `json:"run_id,omitempty"`
	// Page is the number of the page that is missing, and Items how many
	// waiting items it held.
	Page  int64 `json:"page,omitempty"`
	Items int   `json:"items,omitempty"`
}

// Reason is one sentence that says why the queue is halted.
func (h *Halt) Reason() string {
	if h.Item != nil {
		return fmt.Sprintf("job %s failed: %s", h.Item.Job.ID, h.Error)
	}
	return h.Error
}

// AnsweredRequest is what a request that put items in came to, so that it can be
// answered again if the answer was lost.
type AnsweredRequest struct {
	ID string `json:"id"`
	// First is the number of the first new item.
	First int64 `json:"first"`
	// Known are the places in the request of the jobs that were in the queue already.
	Known []int `json:"known,omitempty"`
}

// Depth is how many items wait, in the queue itself and in its pages.
func (s *QueueState) Depth() int {
	return len(s.Waiting) + s.Parked.count() + len(s.Tail)
}

// CountBetween counts the waiting items with the numbers from to to, both
// included; 0 means the first and the last.
func (s *QueueState) CountBetween(from, to int64) int {
	if to == 0 {
		to = s.Accepted
	}
	n := s.Parked.waiting(from, to)
	for _, items := range [][]QueueItem{s.Waiting, s.Tail} {
		for _, item := range items {
			if item.Sequence >= from && item.Sequence <= to {
				n++
			}
		}
	}
	return n
}

// Oldest is when the waiting item was accepted that waits for the longest time,
// or the zero time when none waits.
func (s *QueueState) Oldest() time.Time {
	var oldest time.Time
	note := func(items []QueueItem) {
		for _, item := range items {
			if oldest.IsZero() || item.Accepted.Before(oldest) {
				oldest = item.Accepted
			}
		}
	}
	note(s.Waiting)
	if oldest.IsZero() { // What is parked or in the tail is younger.
		note(s.Tail)
	}
	return oldest
}

// indexOf gives the place of a job among items, or -1.
func indexOf(items []QueueItem, jobID string) int {
	for i := range items {
		if items[i].Job.ID == jobID {
			return i
		}
	}
	return -1
}

// WaitingItem finds a job that waits in the queue itself, nil if it does not: it
// may wait in a page.
func (s *QueueState) WaitingItem(jobID string) *QueueItem {
	if i := indexOf(s.Waiting, jobID); i >= 0 {
		return &s.Waiting[i]
	}
	if i := indexOf(s.Tail, jobID); i >= 0 {
		return &s.Tail[i]
	}
	return nil
}

// busy is 1 while an item runs.
func (s *QueueState) busy() int {
	if s.Running != nil {
		return 1
	}
	return 0
}

// held finds a job that the queue itself holds, running, waiting, or failed so that
// the queue is halted over it, and how many items are ahead of it.
func (s *QueueState) held(jobID string) (item *QueueItem, ahead int) {
	if s.Running != nil && s.Running.Job.ID == jobID {
		return &s.Running.QueueItem, 0
	}
	if s.haltedOver(jobID) {
		return s.Halted.Item, 0
	}
	if i := indexOf(s.Waiting, jobID); i >= 0 {
		return &s.Waiting[i], i + s.busy()
	}
	if i := indexOf(s.Tail, jobID); i >= 0 {
		return &s.Tail[i], len(s.Waiting) + s.Parked.count() + i + s.busy()
	}
	return nil, 0
}

// haltedOver says that the queue is halted over the failure of a job.
func (s *QueueState) haltedOver(jobID string) bool {
	return s.Halted != nil && s.Halted.Item != nil && s.Halted.Item.Job.ID == jobID
}

// size is what an item in the state counts with.
func (i QueueItem) size() int {
	if i.Bytes > 0 {
		return i.Bytes
	}
	return i.estimate()
}

// estimate is the bytes of an item in the state, as they are for usual ones.
func (i QueueItem) estimate() int {
	const fixed = 600 // Options and times, written out.
	size := fixed + len(i.Job.Spec) + len(i.Job.ID) + len(i.Job.Options.Description)
	size += len(i.Cursor)
	for _, key := range workflow.DeterministicKeys(i.Job.Options.Tags) {
		size += len(key) + len(i.Job.Options.Tags[key]) + 6
	}
	return size
}

// sizeOf estimates the bytes of items in the state.
func sizeOf(items []QueueItem) int {
	size := 0
	for _, item := range items {
		size += item.size()
	}
	return size
}

// take removes the waiting item at place i of the head.
func (s *QueueState) take(i int) QueueItem {
	item := s.Waiting[i]
	s.Waiting = append(s.Waiting[:i:i], s.Waiting[i+1:]...)
	s.WaitingBytes -= item.size()
	return item
}

// finish records the end of an item.
func (s *QueueState) finish(item FinishedItem) {
	item.Error = shorten(item.Error)
	item.JobID, item.RequestID = job.Cut(item.JobID, maxShownID), job.Cut(item.RequestID, MaxRequestIDBytes)
	switch item.Status {
	case ItemCompleted:
		s.Completed++
	case ItemFailed:
		s.Failed++
	case ItemCanceled:
		s.Canceled++
	case ItemSkipped:
		s.Skipped++
	}
	if !item.Started.IsZero() && item.Status != ItemSkipped {
		s.Pace.count(item.Ended)
	}
	s.Recent = append(s.Recent, item)
	if extra := len(s.Recent) - recentItems; extra > 0 {
		s.Recent = append([]FinishedItem(nil), s.Recent[extra:]...)
	}
}

// bury puts a failed item among the dead letters.
func (s *QueueState) bury(letter DeadLetter) {
	s.DeadLetters = append(s.DeadLetters, letter)
	if extra := len(s.DeadLetters) - maxDeadLetters; extra > 0 {
		s.DeadLetters = append([]DeadLetter(nil), s.DeadLetters[extra:]...)
		s.DeadDropped += int64(extra)
	}
	s.boundDead()
}

// boundDead drops the oldest letters that carry a definition until those that are
// left have room in the state.
func (s *QueueState) boundDead() {
	size := 0
	for _, letter := range s.DeadLetters {
		size += letter.size()
	}
	if size <= maxDeadBytes {
		return
	}
	var kept []DeadLetter
	for _, letter := range s.DeadLetters {
		if bytes := letter.size(); bytes > 0 && size > maxDeadBytes {
			size -= bytes
			s.DeadDropped++
			continue
		}
		kept = append(kept, letter)
	}
	s.DeadLetters = kept
}

// hasDead says whether there is a dead letter of an item.
func (s *QueueState) hasDead(sequence int64) bool {
	return slices.ContainsFunc(s.DeadLetters, func(l DeadLetter) bool { return l.Sequence == sequence })
}

// unbury removes the dead letter of an item, and says whether there was one.
func (s *QueueState) unbury(sequence int64) bool {
	for i, letter := range s.DeadLetters {
		if letter.Sequence == sequence {
			s.DeadLetters = append(s.DeadLetters[:i:i], s.DeadLetters[i+1:]...)
			return true
		}
	}
	return false
}

// unburyRetried removes the dead letters that an item is a retry of.
func (s *QueueState) unburyRetried(item EnqueueItem) {
	s.unbury(item.DeadLetter)
	if item.RetryOf == "" {
		return
	}
	s.DeadLetters = slices.DeleteFunc(slices.Clone(s.DeadLetters), func(l DeadLetter) bool { return l.retriedBy(item) })
}

// Summary is the state in a few words.
func (s *QueueState) Summary() QueueSummary {
	summary := QueueSummary{Waiting: s.Depth(), Paused: s.Paused, Draining: s.Draining, Halted: s.Halted != nil}
	if s.Running != nil {
		summary.Running = s.Running.Job.ID
	}
	return summary
}

// details is the text that the Web UI shows for the running workflow.
func (s *QueueState) details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**queue %s** · %d waiting · %d completed · %d failed · %d canceled\n", s.Name, s.Depth(), s.Completed, s.Failed, s.Canceled)
	if s.Paused {
		fmt.Fprintf(&b, "\nPaused: %s\n", s.PauseReason)
	}
	if s.Draining {
		b.WriteString("\nDraining: takes no more items.\n")
	}
	if h := s.Halted; h != nil {
		fmt.Fprintf(&b, "\nHalted since %s: %s\n", h.Since.UTC().Format(time.RFC3339), h.Reason())
	}
	if n := int64(len(s.DeadLetters)) + s.DeadDropped; n > 0 {
		fmt.Fprintf(&b, "\nDead letters: %d, the oldest %d dropped\n", n, s.DeadDropped)
	}
	if w := s.Settling; w != nil {
		fmt.Fprintf(&b, "\nWaiting until %s for the handler of the terminated run of %s to hear\n", w.Until.UTC().Format(time.TimeOnly), w.JobID)
	}
	if r := s.Running; r != nil {
		fmt.Fprintf(&b, "\nRunning: #%d %s since %s\n", r.Sequence, r.Job.ID, r.Started.UTC().Format(time.RFC3339))
	}
	for i, item := range s.Waiting {
		if i == 5 {
			fmt.Fprintf(&b, "\n… and %d more\n", s.Depth()-i)
			break
		}
		fmt.Fprintf(&b, "\n- #%d %s", item.Sequence, item.Job.ID)
	}
	return b.String()
}
