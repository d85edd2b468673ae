package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dendrascience/dendra-jobs/contract"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/workflows"
)

// pages reads the parked pages of deep queues. Pages never change, so that what
// was read of them is kept: the ids of whole chapters, and the latest page.
type pages struct {
	temporal sdk.Client

	mu       sync.Mutex
	chapters map[pageName][]workflows.PageIndex
	latest   map[pageName]workflows.QueuePage
	// seen says up to where the chapters of a queue are known.
	seen map[string]workflows.LookInPages
}

// pageName names a page.
type pageName struct {
	queue, epoch string
	first        int64
}

// keptPages bounds the pages that are kept: producers go through them in order.
const keptPages = 16

func newPages(temporal sdk.Client) *pages {
	return &pages{
		temporal: temporal,
		chapters: map[pageName][]workflows.PageIndex{},
		latest:   map[pageName]workflows.QueuePage{},
		seen:     map[string]workflows.LookInPages{},
	}
}

// read gives a page. It is empty if its history was deleted: nothing of it waits.
func (p *pages) read(ctx context.Context, name pageName) (workflows.QueuePage, error) {
	p.mu.Lock()
	page, ok := p.latest[name]
	p.mu.Unlock()
	if ok {
		return page, nil
	}
	page, err := workflows.LoadPage(ctx, p.temporal, contract.QueuePageWorkflowID(name.queue, name.epoch, name.first))
	if isNotFound(err) {
		return workflows.QueuePage{}, nil
	}
	if err != nil {
		return workflows.QueuePage{}, fmt.Errorf("page %d of queue %s: %w", name.first, name.queue, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.latest) >= keptPages {
		clear(p.latest)
	}
	p.latest[name] = page
	return page, nil
}

// chapter gives the index that a page carries.
func (p *pages) chapter(ctx context.Context, name pageName) ([]workflows.PageIndex, error) {
	p.mu.Lock()
	chapter, ok := p.chapters[name]
	p.mu.Unlock()
	if ok {
		return chapter, nil
	}
	page, err := p.read(ctx, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chapters[name] = page.Chapter
	return page.Chapter, nil
}

// find gives the parked pages that have one of the ids, by id, as far as the
// indexes tell.
func (p *pages) find(ctx context.Context, queue string, look workflows.LookInPages, ids []string) (map[string][]int64, error) {
	wanted := map[uint64]string{}
	for _, id := range ids {
		wanted[workflows.IDHash(id)] = id
	}
	indexes := make([][]workflows.PageIndex, len(look.Chapters))
	err := Each(len(look.Chapters), func(i int) (err error) {
		indexes[i], err = p.chapter(ctx, pageName{queue, look.Epoch, look.Chapters[i]})
		return err
	})
	if err != nil {
		return nil, err
	}
	found := map[string][]int64{}
	for _, page := range slices.Concat(indexes...) {
		if page.First < look.First {
			continue // Taken over.
		}
		for _, hash := range page.All() {
			if id, ok := wanted[hash]; ok {
				found[id] = append(found[id], page.First)
			}
		}
	}
	return found, nil
}

// look answers a queue that asks where jobs are: it fills in what the pages say
// of each item.
func (p *pages) look(ctx context.Context, queue string, look workflows.LookInPages, items []workflows.EnqueueItem) error {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.Job.ID
	}
	found, err := p.find(ctx, queue, look, ids)
	if err != nil {
		return err
	}
	for i := range items {
		item := &items[i]
		for _, first := range slices.Concat(found[item.Job.ID], look.Pages) {
			if slices.ContainsFunc(item.Parked, func(known workflows.ParkedItem) bool { return known.Page == first }) {
				continue
			}
			page, err := p.read(ctx, pageName{queue, look.Epoch, first})
			if err != nil {
				return err
			}
			known, tell, err := parkedIn(page, first, item.Job.ID)
			if err != nil {
				return err
			}
			if tell {
				item.Parked = append(item.Parked, known)
			}
		}
	}
	return nil
}

// parkedIn finds a job in a page. It says whether the queue has to be told: of a
// page where the hash of the id is not either, it has not asked.
func parkedIn(page workflows.QueuePage, first int64, jobID string) (known workflows.ParkedItem, tell bool, err error) {
	known.Page = first
	tell = len(page.Items) == 0 // It is not there any more.
	hash := workflows.IDHash(jobID)
	for _, item := range page.Items {
		tell = tell || workflows.IDHash(item.Job.ID) == hash
		if item.Job.ID == jobID {
			known.Sequence = item.Sequence
			known.SpecHash, err = item.Job.SpecHash()
		}
	}
	return known, tell, err
}

// before fills in what is known of a queue's pages without asking the queue.
func (p *pages) before(ctx context.Context, queue string, items []workflows.EnqueueItem) (*workflows.PagesSeen, error) {
	p.mu.Lock()
	known, ok := p.seen[queue]
	p.mu.Unlock()
	if !ok {
		return nil, nil //nolint:nilnil // Documented by its use: nothing is known.
	}
	known.Pages = nil
	if err := p.look(ctx, queue, known, items); err != nil {
		return nil, err
	}
	return &workflows.PagesSeen{Epoch: known.Epoch, Before: known.Before}, nil
}

// learn keeps where a queue said that its pages are.
func (p *pages) learn(queue string, look workflows.LookInPages) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.seen[queue]
	if known.Epoch == look.Epoch && len(look.Chapters) == 0 {
		known.First = max(known.First, look.First)
		p.seen[queue] = known
		return
	}
	if known.Epoch != look.Epoch || look.Before > known.Before {
		p.seen[queue] = look
	}
}

// lookInPages tells the answer of a queue that asks for another look at its pages.
func lookInPages(err error) (workflows.LookInPages, bool) {
	var look workflows.LookInPages
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || app.Type() != workflows.ErrorTypeLookInPages || app.Details(&look) != nil {
		return look, false
	}
	return look, true
}

// parkedItem finds a job that waits in a page of a queue, nil if it does not.
func (c *Client) parkedItem(ctx context.Context, state *workflows.QueueState, jobID string) (*workflows.QueueItem, error) {
	parked := &state.Parked
	if len(parked.Pages) == 0 {
		return nil, nil //nolint:nilnil // Documented: it does not wait there.
	}
	look := workflows.LookInPages{Epoch: parked.Epoch, First: parked.Pages[0].First}
	for _, page := range parked.Pages {
		if page.Index {
			look.Chapters = append(look.Chapters, page.First)
		}
	}
	found, err := c.pages.find(ctx, state.Name, look, []string{jobID})
	if err != nil {
		return nil, err
	}
	candidates := found[jobID]
	for _, index := range parked.Index {
		if slices.Contains(index.All(), workflows.IDHash(jobID)) {
			candidates = append(candidates, index.First)
		}
	}
	for _, first := range candidates {
		page, err := c.pages.read(ctx, pageName{state.Name, parked.Epoch, first})
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if item.Job.ID == jobID && parked.Waits(item.Sequence) {
				return &item, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // Documented: it does not wait there.
}

// waitingItemOf finds a job that waits in a queue, nil if it does not.
func (c *Client) waitingItemOf(ctx context.Context, state *workflows.QueueState, jobID string) (*workflows.QueueItem, error) {
	if item := state.WaitingItem(jobID); item != nil {
		return item, nil
	}
	return c.parkedItem(ctx, state, jobID)
}

// eachWaiting goes through what waits in a queue, in the order it will run,
// without the first skip items. It ends early when visit says false. Pages are
// read several at a time; what they say fits the state, however old that is.
func (c *Client) eachWaiting(ctx context.Context, state *workflows.QueueState, skip int, visit func(workflows.QueueItem) bool) error {
	show := func(items []workflows.QueueItem) bool {
		for _, item := range items {
			if skip > 0 {
				skip--
				continue
			}
			if !visit(item) {
				return false
			}
		}
		return true
	}
	if !show(state.Waiting) {
		return nil
	}
	refs := state.Parked.Pages
	for len(refs) > 0 {
		if n := state.Parked.CountIn(refs[0].First); n <= skip {
			skip -= n
			refs = refs[1:]
			continue
		}
		n := min(len(refs), concurrency)
		read := make([][]workflows.QueueItem, n)
		err := Each(n, func(i int) error {
			page, err := workflows.LoadPage(ctx, c.temporal, contract.QueuePageWorkflowID(state.Name, state.Parked.Epoch, refs[i].First))
			if isNotFound(err) {
				return fmt.Errorf("page %d of queue %s is not there any more: its items cannot be read", refs[i].First, state.Name)
			}
			read[i] = slices.DeleteFunc(page.Items, func(item workflows.QueueItem) bool { return !state.Parked.Waits(item.Sequence) })
			return err
		})
		if err != nil {
			return err
		}
		if !show(slices.Concat(read...)) {
			return nil
		}
		refs = refs[n:]
	}
	show(state.Tail)
	return nil
}

// Placed is a waiting item with how many items are ahead of it.
type Placed struct {
	Ahead int `json:"ahead"`
	workflows.QueueItem
}

// Peek gives what waits in a queue, in the order it will run, from the given
// place on: 0 is the next. A limit of 0 means all.
func (c *Client) Peek(ctx context.Context, name string, from, limit int) ([]Placed, error) {
	state, err := c.QueueState(ctx, name)
	if err != nil {
		return nil, err
	}
	ahead := from
	if state.Running != nil {
		ahead++
	}
	var items []Placed
	err = c.eachWaiting(ctx, state, from, func(item workflows.QueueItem) bool {
		items = append(items, Placed{Ahead: ahead + len(items), QueueItem: item})
		return limit == 0 || len(items) < limit
	})
	return items, err
}
