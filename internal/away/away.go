// Package away watches the servers that a process needs, and says which are away and since when. A
// request that merely stands, as a poll of a dead server does, says nothing: each is asked again
// and again for a short answer.
package away

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Every is how often each server is asked.
	Every = 5 * time.Second
	// Wait is how long it may take to answer.
	Wait = 3 * time.Second
	// Patience is how long a server may give no answer before it counts as away: a restart, or
	// another host of a cluster that takes over, is no reason to take a process out.
	Patience = 10 * time.Second
)

// Server is a server that is away.
type Server struct {
	Name string `json:"name"`
	// Since is when it last answered, or when the process first asked.
	Since time.Time `json:"since"`
	// Error is what came in place of the latest answer.
	Error string `json:"error"`
}

// Watch watches servers. The zero value watches none.
type Watch struct {
	mu      sync.Mutex
	servers []*watched
}

type watched struct {
	name     string
	ask      func(context.Context) error // nil: others note its answers
	answered time.Time
	err      error
}

// Add watches a server, which Run asks. Without a function, only Note tells of it.
func (w *Watch) Add(name string, ask func(context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.find(name); known != nil {
		known.ask = ask
		return
	}
	w.servers = append(w.servers, &watched{name: name, ask: ask, answered: time.Now()})
}

func (w *Watch) find(name string) *watched {
	n := slices.IndexFunc(w.servers, func(s *watched) bool { return s.name == name })
	if n < 0 {
		return nil
	}
	return w.servers[n]
}

// Note notes an answer of a server, or why there is none.
func (w *Watch) Note(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.find(name); s != nil {
		s.note(err)
	}
}

func (s *watched) note(err error) {
	if s.err = err; err == nil {
		s.answered = time.Now()
	}
}

// Run asks all servers until the context ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		w.askAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watch) askAll(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		name, ask := s.name, s.ask // Add may change it.
		if ask == nil {
			continue
		}
		all.Go(func() {
			asking, cancel := context.WithTimeout(ctx, Wait)
			defer cancel()
			err := ask(asking)
			if ctx.Err() == nil {
				w.Note(name, err)
			}
		})
	}
}

// Away are the servers that have given no answer for longer than Patience.
func (w *Watch) Away() []Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []Server
	for _, s := range w.servers {
		if s.err != nil && time.Since(s.answered) > Patience {
			text, _, _ := strings.Cut(s.err.Error(), "\n")
			list = append(list, Server{Name: s.name, Since: s.answered.UTC(), Error: text})
		}
	}
	return list
}
