package hobolink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// ledger is one in memory, for tests on the clock of a synctest bubble.
type ledger struct {
	mu       sync.Mutex
	value    []byte
	revision uint64
	away     bool
	behind   time.Duration // how far its clock is set back
	stores   int
}

var errAway = errors.New("the ledger is away")

func (l *ledger) Load(context.Context, string) ([]byte, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return nil, 0, errAway
	}
	return l.value, l.revision, nil
}

func (l *ledger) Store(_ context.Context, _ string, value []byte, revision uint64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return false, errAway
	}
	if revision != l.revision {
		return false, nil
	}
	l.value, l.revision = value, revision+1
	l.stores++
	return true, nil
}

func (l *ledger) Now(context.Context) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return time.Time{}, errAway
	}
	return time.Now().Add(-l.behind), nil
}

func (l *ledger) set(change func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// process makes a client as if in a process of its own.
func process(t *testing.T, handler *hobolinktest.Handler, shared hobolink.Ledger) *hobolink.Client {
	t.Helper()
	client, err := hobolink.NewProcess(hobolink.Config{
		BaseURL: "http://hobolink.test", Token: handler.Options().Token, Ledger: shared, HTTPClient: &http.Client{Transport: inProcess{handler}},
	})
	require.NoError(t, err)
	return client
}

// most is the largest number of requests in any span of a length, and how many of
// all were refused.
func most(handler *hobolinktest.Handler, span time.Duration) (largest, refused int) {
	requests := handler.Requests()
	first := 0
	for n, request := range requests {
		if request.Status == http.StatusTooManyRequests {
			refused++
		}
		for requests[first].At.Add(span).Compare(request.At) <= 0 {
			first++
		}
		largest = max(largest, n-first+1)
	}
	return largest, refused
}

// TestProcessesShareTheRate has processes of one token at work, with several jobs
// each: the vendor never sees more than 60 requests in any 60 seconds, refuses none,
// and is not left idle.
func TestProcessesShareTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, handler := newClient(t, hobolinktest.Options{})
		shared := &ledger{}
		const each = 50
		began := time.Now()
		var group sync.WaitGroup
		for range 3 {
			client := process(t, handler, shared)
			for range 2 {
				group.Go(func() {
					for range each {
						if _, err := client.Data(t.Context(), lastHour(handler)); err != nil {
							t.Errorf("refused: %v", err)
						}
					}
				})
			}
		}
		group.Wait()
		largest, refused := most(handler, time.Minute)
		require.Equal(t, 60, largest)
		require.Zero(t, refused)
		// 300 requests are five windows, of which the last needs not pass.
		require.Less(t, time.Since(began), 4*time.Minute+10*time.Second)
	})
}

// TestRateWithoutItsLedger: each of two processes keeps to half of the limit then,
// and what it did counts when the ledger is back.
func TestRateWithoutItsLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, handler := newClient(t, hobolinktest.Options{})
		shared := &ledger{away: true}
		clients := []*hobolink.Client{process(t, handler, shared), process(t, handler, shared)}
		read := func(n int) {
			var group sync.WaitGroup
			for _, client := range clients {
				group.Go(func() {
					for range n {
						if _, err := client.Data(t.Context(), lastHour(handler)); err != nil {
							t.Errorf("refused: %v", err)
						}
					}
				})
			}
			group.Wait()
		}
		began := time.Now()
		read(15)
		require.Less(t, time.Since(began), time.Second)
		read(30)
		require.Greater(t, time.Since(began), 50*time.Second, "half of the limit was used")
		shared.set(func(l *ledger) { l.away = false })
		read(40)
		largest, refused := most(handler, time.Minute)
		require.LessOrEqual(t, largest, 60)
		require.Zero(t, refused)
	})
}

// TestRefusalIsShared: a process that is told to wait tells the others.
func TestRefusalIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, handler := newClient(t, hobolinktest.Options{})
		shared := &ledger{}
		first, second := process(t, handler, shared), process(t, handler, shared)
		handler.FailNext(1, hobolinktest.Failure{Status: http.StatusTooManyRequests, RetryAfter: 40 * time.Second})
		began := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := first.Data(t.Context(), lastHour(handler))
			done <- err
		}()
		synctest.Wait()
		_, err := second.Data(t.Context(), lastHour(handler))
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 40*time.Second)
		require.NoError(t, <-done)
	})
}

// TestLedgerClockIsSetBack: nobody waits for times that are far ahead.
func TestLedgerClockIsSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, handler := newClient(t, hobolinktest.Options{RateLimit: 10})
		shared := &ledger{}
		client := process(t, handler, shared)
		began := time.Now()
		for n := range 30 {
			if n == 15 {
				shared.set(func(l *ledger) { l.behind = 24 * time.Hour })
			}
			_, err := client.Data(t.Context(), lastHour(handler))
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), 5*time.Minute)
		_, refused := most(handler, time.Minute)
		require.Zero(t, refused)
	})
}

func TestWhatCannotBeReadSaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, handler := newClient(t, hobolinktest.Options{})
		shared := &ledger{value: []byte(`[1`), revision: 4}
		_, err := process(t, handler, shared).Data(t.Context(), lastHour(handler))
		require.NoError(t, err)
		var value struct {
			Limit    int     `json:"limit"`
			Window   int64   `json:"window_ms"`
			Requests []int64 `json:"requests"`
		}
		require.NoError(t, json.Unmarshal(shared.value, &value))
		require.Equal(t, 60, value.Limit)
		require.EqualValues(t, 60_000, value.Window)
		require.Len(t, value.Requests, 1)
	})
}

// requester is set in a process that TestProcessesShareTheRateOverNATS starts.
const requester = "HOBOLINK_TEST_REQUESTER"

type order struct {
	BaseURL, Token, NATS, Logger string
	Requests                     int
	Admitted                     string // the file to write the times of admission to
}

// recordingLedger records when it admitted the requests of its process. Its clock is that of the
// machine, which all processes share: how exactly the clock of NATS is read, and how soon a request
// arrives at the vendor, depends on how busy the machine is.
type recordingLedger struct {
	hobolink.Ledger
	now      int64
	admitted []int64 // milliseconds since 1970
}

func (r *recordingLedger) Now(context.Context) (time.Time, error) {
	now := time.Now()
	r.now = now.UnixMilli()
	return now, nil
}

func (r *recordingLedger) Store(ctx context.Context, key string, value []byte, revision uint64) (bool, error) {
	stored, err := r.Ledger.Store(ctx, key, value, revision)
	if !stored || err != nil {
		return stored, err
	}
	var noted struct {
		Requests []int64 `json:"requests"`
	}
	if err := json.Unmarshal(value, &noted); err != nil {
		return true, err
	}
	if n := len(noted.Requests); n > 0 && noted.Requests[n-1] == r.now { // else it tells of a refusal
		r.admitted = append(r.admitted, r.now)
	}
	return true, nil
}

// makeRequests makes them, and says when each was admitted.
func (o order) makeRequests(t *testing.T, rates *pipeline.Rates) []int64 {
	t.Helper()
	ledger := &recordingLedger{Ledger: rates}
	client, err := hobolink.New(hobolink.Config{BaseURL: o.BaseURL, Token: o.Token, Ledger: ledger})
	require.NoError(t, err)
	for range o.Requests {
		_, err := client.Data(t.Context(), hobolink.Frame{Logger: o.Logger, Start: noon, End: noon})
		require.NoError(t, err)
	}
	return ledger.admitted
}

// TestRequester makes requests on behalf of TestProcessesShareTheRateOverNATS.
func TestRequester(t *testing.T) {
	t.Parallel()
	text := os.Getenv(requester)
	if text == "" {
		t.Skip("only in a process that another test starts")
	}
	var o order
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	rates := connectRates(t, o.NATS)
	began := time.Now()
	read, err := rates.Now(t.Context())
	require.NoError(t, err)
	ended := time.Now()
	require.WithinDuration(t, ended, read, ended.Sub(began), "NATS has the clock of this machine")

	admitted, err := json.Marshal(o.makeRequests(t, rates))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.Admitted, admitted, 0o600))
}

// TestProcessesShareTheRateOverNATS has real processes share a token by a real server, in shorter
// windows than the vendor's: in none are more than the limit admitted. When they arrive at the
// vendor is for [TestProcessesShareTheRate].
func TestProcessesShareTheRateOverNATS(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	const window, limit, processes, each = 2 * time.Second, 30, 3, 25
	handler := hobolinktest.NewHandler(hobolinktest.Options{
		RateLimit: limit, RateWindow: window, Now: func() time.Time { return noon },
	})
	server := stacktest.Serve(t, handler)
	o := order{BaseURL: server, Token: handler.Options().Token, NATS: st.NATS, Logger: handler.Options().Loggers[0]}
	// What the limit is the first answer says, and the ledger tells it to the others.
	rates := connectRates(t, st.NATS)
	o.Requests = 2
	admitted := o.makeRequests(t, rates)

	o.Requests = each
	var group sync.WaitGroup
	said, files := make([]string, processes), make([]string, processes)
	for n := range processes {
		files[n] = filepath.Join(t.TempDir(), "admitted")
		o.Admitted = files[n]
		text, err := json.Marshal(o)
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRequester$", "-test.v")
		cmd.Env = append(os.Environ(), requester+"="+string(text))
		group.Go(func() {
			out, err := cmd.CombinedOutput()
			said[n] = fmt.Sprintf("%v\n%s", err, out)
		})
	}
	group.Wait()
	for n, text := range said {
		require.Contains(t, text, "--- PASS: TestRequester")
		content, err := os.ReadFile(files[n])
		require.NoError(t, err)
		var times []int64
		require.NoError(t, json.Unmarshal(content, &times))
		require.GreaterOrEqual(t, len(times), each)
		admitted = append(admitted, times...)
	}
	slices.Sort(admitted)
	for n, at := range admitted[limit:] {
		require.GreaterOrEqual(t, at-admitted[n], window.Milliseconds(), "%d requests in a window: %v", limit+1, admitted)
	}
	_, refused := most(handler, window)
	require.EqualValues(t, processes*each+2+refused, handler.RequestCount())

	value, _, err := rates.Load(t.Context(), hobolink.LedgerKey(strings.TrimPrefix(server, "http://"), o.Token))
	require.NoError(t, err)
	require.Contains(t, string(value), `"limit":30,"window_ms":2000`)
	require.NotContains(t, string(value), o.Token)
}

func connectRates(t *testing.T, url string) *pipeline.Rates {
	t.Helper()
	client, err := pipeline.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.NoError(t, client.Ready(t.Context()))
	return client.Rates()
}
