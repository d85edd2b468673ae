package page

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// queuePath is the address of a queue.
func queuePath(name string) string { return "/queues/" + url.PathEscape(name) }

// queueRow is a queue with how long it takes.
type queueRow struct {
	*jobsv1.Queue
	Status string
	ToGo   string
}

func newQueueRow(q *jobsv1.Queue) queueRow {
	return queueRow{Queue: q, Status: word(q.GetStatus()), ToGo: toGo(q, int(q.GetWaiting()), time.Now())}
}

// queueItem is an item with how long it takes until it runs.
type queueItem struct {
	*jobsv1.QueueItem
	Position int
	ToGo     string
	Buttons  []button
}

// pace is how long a queue takes for an item, as measured in the last minute, or in the last
// hour if that is too few to tell. A queue that began later is measured from there. It is 0
// if none ran.
func pace(q *jobsv1.Queue, now time.Time) time.Duration {
	items, span := q.GetRanLastMinute(), time.Minute
	if items < 5 {
		items, span = q.GetRanLastHour(), time.Hour
	}
	if items == 0 {
		return 0
	}
	if since := q.GetRanSinceTime(); since != nil {
		span = min(span, now.Sub(since.AsTime()))
	}
	return max(span/time.Duration(items), time.Millisecond)
}

// toGo says how long it takes until so many items have run.
func toGo(q *jobsv1.Queue, items int, now time.Time) string {
	switch q.GetStatus() {
	case jobsv1.QueueStatus_QUEUE_STATUS_PAUSED, jobsv1.QueueStatus_QUEUE_STATUS_HALTED, jobsv1.QueueStatus_QUEUE_STATUS_ENDED,
		jobsv1.QueueStatus_QUEUE_STATUS_STOPPING:
		return "not while it is " + word(q.GetStatus())
	}
	each := pace(q, now)
	switch {
	case items <= 0:
		return "now"
	case each == 0:
		return "not known: none ran in the last hour"
	}
	return wait(time.Duration(items) * each)
}

func (p *Page) queues(r *http.Request) (*document, error) {
	o, err := p.readOverview(r.Context(), 1)
	if err != nil {
		return nil, err
	}
	data := queuesView{Rows: make([]queueRow, len(o.GetQueues()))}
	names := make([]string, len(o.GetQueues()))
	for i, q := range o.GetQueues() {
		data.Rows[i], names[i] = newQueueRow(q), q.GetName()
	}
	data.Charts = p.charts(r, queueSeries, names...)
	return &document{
		Title: "Queues", View: "queues", Section: "/queues", Revision: p.revision(o), Follow: []string{"queues"}, Chart: true, Data: data,
	}, nil
}

type queuesView struct {
	Rows   []queueRow
	Charts *chartsView
}

// queueView is all about one queue.
type queueView struct {
	queueRow
	Items       []queueItem
	NextPage    string
	DeadLetters []deadLetter
	Buttons     []button
	DeadButtons []button
	Changes     []*jobsv1.Change
	Charts      *chartsView
	Notes       []string
}

// deadLetter is a failed item with its actions.
type deadLetter struct {
	*jobsv1.DeadLetter
	Buttons []button
}

func (p *Page) queue(r *http.Request) (*document, error) {
	ctx, name := r.Context(), r.PathValue("name")
	answer, err := p.API.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: name})
	if err != nil {
		return nil, err
	}
	q := answer.GetQueue()
	role := p.role(r)
	data := queueView{queueRow: newQueueRow(q), Buttons: buttons(role, verbs.QueueVerbs(), verbs.OfQueue(q), name)}
	items, err := p.API.Queues.ListQueueItems(ctx, &jobsv1.ListQueueItemsRequest{Queue: name, PageToken: r.URL.Query().Get("page")})
	if err != nil {
		data.Notes = append(data.Notes, "The items cannot be read: "+sentence(err)+".")
	}
	for _, item := range items.GetItems() {
		data.Items = append(data.Items, queueItem{
			QueueItem: item, Position: int(item.GetAhead()) + 1, ToGo: toGo(q, int(item.GetAhead()), time.Now()),
			Buttons: buttons(role, verbs.ItemVerbs(), verbs.OfQueue(q), name, item.GetJobId()),
		})
	}
	if token := items.GetNextPageToken(); token != "" {
		data.NextPage = queuePath(name) + "?" + url.Values{"page": {token}}.Encode()
	}
	letters, err := p.API.Queues.ListDeadLetters(ctx, &jobsv1.ListDeadLettersRequest{Queue: name})
	if err != nil {
		data.Notes = append(data.Notes, "The dead letters cannot be read: "+sentence(err)+".")
	}
	for _, letter := range letters.GetDeadLetters() {
		data.DeadLetters = append(data.DeadLetters, deadLetter{letter, with(
			buttons(role, verbs.DeadLetterVerbs(), verbs.OfQueue(q), name), field{"sequence", decimal(letter.GetSequence())})})
	}
	if data.Changes, err = p.changes(ctx, "queue = "+strconv.Quote(name)); err != nil {
		data.Notes = append(data.Notes, "The history of changes cannot be read: "+sentence(err)+".")
	}
	if len(data.DeadLetters) > 1 {
		data.DeadButtons = ofAll(buttons(role, verbs.DeadLetterVerbs(), verbs.OfQueue(q), name), "all")
	}
	data.Charts = p.charts(r, queueSeries, name)
	return &document{Title: "Queue " + name, View: "queue", Section: "/queues", Follow: []string{"queue:" + name}, Chart: true, Data: data}, nil
}
