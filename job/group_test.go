package job_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

func TestAPanicInAGroupIsAnErrorThatEndsIt(t *testing.T) {
	t.Parallel()
	group, ctx := job.NewGroup(t.Context())
	group.Go(func() error {
		<-ctx.Done() // The panic of the other one ends it.
		return ctx.Err()
	})
	group.Go(func() error {
		list := make([]error, 0)
		return list[len(list)]
	})
	err := group.Wait()
	require.Equal(t, errclass.Panic, job.ClassOf(err))
	p, ok := errors.AsType[*job.PanicError](err)
	require.True(t, ok)
	require.Contains(t, p.Stack, "TestAPanicInAGroupIsAnErrorThatEndsIt")
	require.EqualError(t, err, "panicked: runtime error: index out of range [0] with length 0")
}

func TestUntilEndsWithWhatComesFirst(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	stopped, cancel := job.Until(t.Context(), stop, 0)
	defer cancel()
	require.NoError(t, stopped.Err())
	close(stop)
	<-stopped.Done()

	parent, end := context.WithCancel(t.Context())
	never, cancelNever := job.Until(parent, nil, 0)
	defer cancelNever()
	end()
	<-never.Done()
}
