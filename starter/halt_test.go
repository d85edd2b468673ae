package main_test

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// halt stands before Temporal, and lets a number of Schedules be made. An apply that wants to make
// one more waits, until it is killed.
type halt struct {
	// Address is Temporal's, HOST:PORT.
	Address string

	s       *site
	reached chan struct{}
}

var errHalted = errors.New("halted by the test")

func (s *site) haltAfter(schedules int) *halt {
	s.Helper()
	h := &halt{s: s, reached: make(chan struct{})}
	ended := make(chan struct{})
	var mu sync.Mutex
	proxy, err := grpcproxy.Start(s.Context(), s.stack.Temporal, grpcproxy.Options{Refuse: func(method string) error {
		if method != "CreateSchedule" {
			return nil
		}
		mu.Lock()
		schedules--
		if schedules == -1 {
			close(h.reached)
		}
		halted := schedules < 0
		mu.Unlock()
		if halted {
			<-ended
			return errHalted
		}
		return nil
	}})
	require.NoError(s, err)
	h.Address = proxy.Address
	s.Cleanup(func() {
		close(ended)
		proxy.Close()
	})
	return h
}

// wait waits until the apply is at that point.
func (h *halt) wait() {
	h.s.Helper()
	stacktest.WaitFor(h.s, "an apply that wants to make one more Schedule", func() (bool, error) {
		select {
		case <-h.reached:
			return true, nil
		default:
			return false, nil
		}
	})
}
