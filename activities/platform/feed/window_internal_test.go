package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// event is an update of a station; its token is its number.
func event(n int, station string) *platformv1.StreamChangesResponse {
	return &platformv1.StreamChangesResponse{ResumeToken: strconv.Itoa(n), Change: &platformv1.Change{
		Id: strconv.Itoa(n), Operation: platformv1.Operation_OPERATION_UPDATE, Kind: platformv1.ResourceKind_RESOURCE_KIND_STATION,
		ResourceId: station, Time: timestamppb.Now(),
	}}
}

func checkpoint(n int) *platformv1.StreamChangesResponse {
	return &platformv1.StreamChangesResponse{ResumeToken: strconv.Itoa(n)}
}

// ledger notes what a window does.
type ledger struct {
	mu          sync.Mutex
	handled     []string // in the order of their ends
	quarantined []string
	atOnce      int
	most        int
	counts      map[string]int64
}

// window makes a window whose handler notes what do lets succeed.
func (l *ledger) window(ctx context.Context, concurrency int, stopped <-chan struct{}, do func(change *platformv1.Change) error) *window {
	l.counts = map[string]int64{}
	w := newWindow(ctx, concurrency, stopped)
	w.count = func(name string, n int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.counts[name] += n
	}
	w.handle = func(_ context.Context, change *platformv1.Change) error {
		l.mu.Lock()
		l.atOnce++
		l.most = max(l.most, l.atOnce)
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			l.atOnce--
			l.mu.Unlock()
		}()
		if err := do(change); err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.handled = append(l.handled, change.GetId())
		return nil
	}
	w.quarantine = func(_ context.Context, change *platformv1.Change, _ error) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.quarantined = append(l.quarantined, change.GetId())
		return nil
	}
	return w
}

// done are the changes that were handled so far.
func (l *ledger) done() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.handled)
}

func token(w *window) string {
	token, _ := w.position()
	return token
}

func TestOrderAndConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w := l.window(t.Context(), 2, nil, func(change *platformv1.Change) error {
			wait := time.Second
			if change.GetId() == "1" {
				wait = 10 * time.Second
			}
			time.Sleep(wait) // the clock of the test bubble
			return nil
		})
		for n, station := range []string{"", "slow", "a", "a", "b", "slow"} {
			if n > 0 {
				w.add(event(n, station))
				synctest.Wait() // The first two have the slots.
			}
		}
		w.add(checkpoint(6))
		unfinished, _ := w.unfinished()
		require.Equal(t, 6, unfinished)
		time.Sleep(9 * time.Second) // the clock of the test bubble
		require.Len(t, l.done(), 3, "what is slow holds up its own resource alone")
		require.Empty(t, token(w), "nothing is acknowledged before what is slow")
		time.Sleep(1500 * time.Millisecond) // the clock of the test bubble
		require.Equal(t, "4", token(w))
		time.Sleep(time.Second) // the clock of the test bubble
		require.Equal(t, "6", token(w))
		require.Equal(t, []string{"1", "5"}, l.done()[3:])
		require.Less(t, slices.Index(l.handled, "2"), slices.Index(l.handled, "3"))
		require.Equal(t, 2, l.most)
		w.close()
	})
}

var (
	errPlain = errors.New("something")
	errFinal = job.Final("BadPhoto", "no photo")
	errAway  = job.Fail(errclass.StoreUnreachable, "away")
	errToken = job.Fail(errclass.Release2Token, "refused")
)

// TestFailures: what one change does to the rest of the feed.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do          func(try int) error
		tries       int
		took        time.Duration
		quarantined bool
		fails       error
	}{
		"a final error":                         {func(int) error { return errFinal }, 1, 0, true, nil},
		"a panic":                               {func(int) error { panic("nothing there") }, 1, 0, true, nil},
		"an error that goes away":               {func(try int) error { return errUntil(try, 3, errPlain) }, 3, 3 * time.Second, false, nil},
		"an error that stays":                   {func(int) error { return errPlain }, 5, 15 * time.Second, true, nil},
		"a server that is away, and comes back": {func(try int) error { return errUntil(try, 5, errAway) }, 5, 15 * time.Second, false, nil},
		"a server that is away":                 {func(int) error { return errAway }, 5, 15 * time.Second, false, errAway},
		"a token that is refused":               {func(int) error { return errToken }, 5, 15 * time.Second, false, errToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, tries, began := &ledger{}, 0, time.Now()
				w := l.window(t.Context(), 4, nil, func(change *platformv1.Change) error {
					if change.GetId() != "1" {
						return nil
					}
					tries++
					return c.do(tries)
				})
				w.add(event(1, "a"))
				w.add(event(2, "a"))
				w.add(event(3, "b"))
				synctest.Wait()
				require.Contains(t, l.done(), "3", "another resource does not wait")
				require.NoError(t, w.work.Wait())
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, c.tries, tries)
				require.ErrorIs(t, w.failure(), c.fails)
				if c.fails != nil {
					require.ErrorContains(t, w.failure(), "the update of station a: "+c.fails.Error())
					require.Empty(t, token(w))
					require.Equal(t, []string{"3"}, l.handled, "the next change of the resource waits")
					return
				}
				require.Equal(t, "3", token(w))
				require.Equal(t, c.quarantined, len(l.quarantined) == 1)
				require.Contains(t, l.handled, "2", "the resource goes on")
			})
		})
	}
}

func errUntil(try, good int, err error) error {
	if try < good {
		return err
	}
	return nil
}

func TestWhatKeepsTheChangeComesFirst(t *testing.T) {
	t.Parallel()
	for _, keeps := range []error{errAway, errToken} {
		err := Join([]error{nil, errFinal, errPlain, keeps})
		require.False(t, isPoison(err, maxTries))
		require.ErrorIs(t, err, errFinal)
	}
	require.False(t, isPoison(Join([]error{errFinal, job.Retryable("Own", 0, "again")}), 1))
	require.True(t, isPoison(Join([]error{errFinal}), 1))
}

// TestAQuarantineThatIsAway: a change is acknowledged when it is in quarantine.
func TestAQuarantineThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, tries := &ledger{}, 0
		w := l.window(t.Context(), 1, nil, func(*platformv1.Change) error { return errFinal })
		w.quarantine = func(context.Context, *platformv1.Change, error) error {
			tries++
			return errUntil(tries, 3, job.Fail(errclass.PipelineUnreachable, "away"))
		}
		w.add(event(1, "a"))
		time.Sleep(2 * time.Second) // the clock of the test bubble
		require.Empty(t, token(w))
		require.NoError(t, w.work.Wait())
		require.Equal(t, "1", token(w))
		require.Equal(t, map[string]int64{"quarantined": 1, "retries": 2}, l.counts)
	})
}

func TestTheEndOfAnIteration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, tries := &ledger{}, 0
		w := l.window(t.Context(), 1, nil, func(*platformv1.Change) error {
			tries++
			time.Sleep(time.Second) // the clock of the test bubble
			return errUntil(tries, 3, errPlain)
		})
		w.add(event(1, "a"))
		w.add(event(2, "a"))
		synctest.Wait()
		w.close()
		require.Equal(t, []string{"1"}, l.handled, "what was begun is finished, the rest is left")
		require.Equal(t, "1", token(w))
		require.NoError(t, w.failure())
	})
	synctest.Test(t, func(t *testing.T) {
		l, stopped := &ledger{}, make(chan struct{})
		w := l.window(t.Context(), 1, stopped, func(*platformv1.Change) error { return errPlain })
		w.add(event(1, "a"))
		synctest.Wait()
		began := time.Now()
		close(stopped)
		w.close()
		require.Zero(t, time.Since(began), "a stop waits for no other try")
		require.Empty(t, token(w))
		require.NoError(t, w.failure())
	})
}

// TestEveryChangeIsHandled cuts iterations off at any moment, as crashes do: all changes
// are handled, those of a resource in their order, and each is seen again only if it was
// not acknowledged.
func TestEveryChangeIsHandled(t *testing.T) {
	t.Parallel()
	for range 30 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			const total = 300
			feed := make([]*platformv1.StreamChangesResponse, total)
			for n := range feed {
				feed[n] = event(n, fmt.Sprint("station ", draw(12)))
				if draw(10) == 0 {
					feed[n] = checkpoint(n)
				}
			}
			newest := map[string]int{} // change by station
			saved := -1
			for iterations := 0; saved < total-1; iterations++ {
				require.Less(t, iterations, 1000, "seed %d", seed)
				ctx, cancel := context.WithCancel(t.Context())
				l := &ledger{}
				w := l.window(ctx, 1+draw(5), nil, func(change *platformv1.Change) error {
					time.Sleep(time.Duration(draw(100)) * time.Millisecond) // the clock of the test bubble
					if draw(20) == 0 {
						return errPlain
					}
					n, _ := strconv.Atoi(change.GetId())
					mu.Lock()
					defer mu.Unlock()
					if n > newest[change.GetResourceId()] {
						for missed := newest[change.GetResourceId()] + 1; missed < n; missed++ {
							require.NotEqual(t, change.GetResourceId(), feed[missed].GetChange().GetResourceId(), "seed %d: %d before %d", seed, n, missed)
						}
						newest[change.GetResourceId()] = n
					}
					require.Greater(t, n, saved, "seed %d: it was acknowledged", seed)
					return nil
				})
				for _, response := range feed[saved+1:] {
					w.add(response)
				}
				time.Sleep(time.Duration(draw(2000)) * time.Millisecond) // the clock of the test bubble
				cancel()                                                 // The lease has ended.
				w.close()
				require.Empty(t, l.quarantined)
				if at := token(w); at != "" {
					n, err := strconv.Atoi(at)
					require.NoError(t, err)
					require.GreaterOrEqual(t, n, saved)
					mu.Lock()
					saved = n
					mu.Unlock()
				}
			}
			for n, response := range feed {
				if change := response.GetChange(); change != nil {
					require.GreaterOrEqual(t, newest[change.GetResourceId()], n, "seed %d", seed)
				}
			}
		})
	}
}
