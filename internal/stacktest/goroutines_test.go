package stacktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// The goroutines of a test are those that it starts, at any depth.
func TestGoroutinesOfATest(t *testing.T) {
	t.Parallel()
	other := make(chan struct{})
	defer close(other)
	go func() { <-other }() // before the count begins
	count := stacktest.Goroutines(t)
	require.Equal(t, 1, count(), "its own")
	started, done := make(chan struct{}), make(chan struct{})
	for range 3 {
		go func() {
			go func() { started <- struct{}{}; <-done }()
			started <- struct{}{}
			<-done
		}()
	}
	for range 6 {
		<-started
	}
	require.Equal(t, 7, count())
	close(done)
	stacktest.WaitFor(t, "their end", func() (bool, error) { return count() == 1, nil })
}
