package verbs_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/verbs"
)

func TestEachTellsOfAll(t *testing.T) {
	t.Parallel()
	const many = 100
	odd := errors.New("odd")
	var atOnce, most atomic.Int32
	var told []int
	answers := verbs.Each(t.Context(), many, func(_ context.Context, i int) (verbs.Done, error) {
		now := atOnce.Add(1)
		defer atOnce.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		if i%2 == 1 {
			return verbs.Done{}, odd
		}
		return verbs.Done{Result: strconv.Itoa(i)}, nil
	}, func(ended int) { told = append(told, ended) })
	require.LessOrEqual(t, most.Load(), int32(verbs.AtOnce))
	require.Len(t, answers, many)
	require.Len(t, told, many)
	for i, answer := range answers {
		require.Equal(t, i+1, told[i])
		if i%2 == 1 {
			require.Equal(t, verbs.Answer{Err: odd}, answer)
		} else {
			require.Equal(t, verbs.Answer{Done: verbs.Done{Result: strconv.Itoa(i)}}, answer)
		}
	}
	require.Empty(t, verbs.Each(t.Context(), 0, nil, nil))
}

func TestEachBeginsNoMoreOnceItIsBrokenOff(t *testing.T) {
	t.Parallel()
	const many, before = 100, 20
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := verbs.Each(ctx, many, func(working context.Context, i int) (verbs.Done, error) {
		switch {
		case i == before:
			cancel()
		case i > before:
			<-ctx.Done()
		}
		return verbs.Done{Result: "done"}, working.Err() // What is under way ends.
	}, nil)
	begun := 0
	for i, answer := range answers {
		if answer.Err == nil {
			begun++
			require.Equal(t, "done", answer.Done.Result)
			continue
		}
		require.ErrorIs(t, answer.Err, verbs.ErrNotDone)
		require.Greater(t, i, before)
	}
	require.Greater(t, begun, before)
	require.LessOrEqual(t, begun, before+verbs.AtOnce)
}
