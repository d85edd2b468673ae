// Package stops ends what runs, whatever fails or hangs on the way.
package stops

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A stop that hangs costs no data: every server survives kill -9.
const (
	timeout    = 10 * time.Second // of one server
	allTimeout = 20 * time.Second // of all; less than the StopGrace of internal/stack
)

// Servers are servers that run, in the order of their starts.
type Servers struct{ running []server }

type server struct {
	name string
	stop func() error
}

// Add takes a server that has started.
func (s *Servers) Add(name string, stop func() error) {
	s.running = append(s.running, server{name, stop})
}

// Stop ends the servers in the reverse order of their start, and gives up on those that hang: the
// end of the process ends them.
func (s *Servers) Stop() error {
	var errs []error
	deadline := time.Now().Add(allTimeout)
	for _, running := range slices.Backward(s.running) {
		done := make(chan error, 1)
		go func() { done <- running.stop() }()
		select {
		case err := <-done:
			if err != nil {
				errs = append(errs, fmt.Errorf("%s did not stop cleanly: %w", running.name, err))
			}
		case <-time.After(min(timeout, time.Until(deadline))):
			errs = append(errs, fmt.Errorf("%s did not stop in time, and ends with the process", running.name))
		}
	}
	return errors.Join(errs...)
}

// InTurn takes each of the steps, also after one that failed. It says what failed before it takes
// the next step, and reports whether nothing did.
func InTurn(say func(error), steps ...func() error) (well bool) {
	well = true
	for _, step := range steps {
		if err := step(); err != nil {
			say(err)
			well = false
		}
	}
	return well
}
