package hobolink_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// inProcess lets a client talk to a handler without a network, so that a test
// can run on the clock of a synctest bubble.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	p.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// newClient makes a client with a token of its own, and so a limiter of its own.
func newClient(t *testing.T, options hobolinktest.Options) (*hobolink.Client, *hobolinktest.Handler) {
	t.Helper()
	options.Token = "token-of-" + t.Name()
	options.Now = func() time.Time { return noon }
	handler := hobolinktest.NewHandler(options)
	client, err := hobolink.New(hobolink.Config{
		BaseURL: "http://hobolink.test", Token: options.Token, HTTPClient: &http.Client{Transport: inProcess{handler}},
	})
	require.NoError(t, err)
	return client, handler
}

func lastHour(h *hobolinktest.Handler) hobolink.Frame {
	return hobolink.Frame{Logger: h.Options().Loggers[0], Start: noon.Add(-time.Hour), End: noon}
}

func TestDataIsTheLedger(t *testing.T) {
	t.Parallel()
	client, handler := newClient(t, hobolinktest.Options{Seed: 3})
	frame := lastHour(handler)
	answer, err := client.Data(t.Context(), frame)
	require.NoError(t, err)
	require.Empty(t, answer.Rejected)
	want := handler.Observations(frame.Logger, frame.Start, frame.End)
	require.Len(t, answer.Observations, len(want))
	for i, got := range answer.Observations {
		require.Equal(t, want[i], hobolinktest.Observation{
			Logger: got.Logger, Sensor: got.Sensor, Time: got.Time, MeasurementType: got.MeasurementType,
			DataType: got.DataType, Unit: got.Unit, Value: *got.Value,
		})
	}
}

func TestRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	client, handler := newClient(t, hobolinktest.Options{})
	_, err := client.Data(t.Context(), hobolink.Frame{Logger: "no-such", Start: noon, End: noon})
	require.ErrorContains(t, err, "VAL-002")
	require.ErrorContains(t, err, "http://hobolink.test")
	require.ErrorContains(t, err, "no-such")
	require.True(t, jobtest.FailureOf(t, err).Kind.Final())
	require.Equal(t, errclass.HobolinkRequest, jobtest.FailureOf(t, err).Class)

	handler.FailNext(1, hobolinktest.Failure{Status: http.StatusUnauthorized})
	_, err = client.Data(t.Context(), lastHour(handler))
	require.True(t, jobtest.FailureOf(t, err).Kind.Final())
	require.Equal(t, errclass.HobolinkToken, jobtest.FailureOf(t, err).Class)
	require.ErrorContains(t, err, "ATH-001")
	require.EqualValues(t, 2, handler.RequestCount(), "neither was tried again")
}

func TestTokenStaysSecret(t *testing.T) {
	t.Parallel()
	_, handler := newClient(t, hobolinktest.Options{})
	const wrong = "wrong-token-of-mine"
	client, err := hobolink.New(hobolink.Config{
		BaseURL: "http://hobolink.test", Token: wrong, HTTPClient: &http.Client{Transport: inProcess{handler}},
	})
	require.NoError(t, err)
	_, err = client.Data(t.Context(), lastHour(handler))
	require.Error(t, err)
	require.NotContains(t, err.Error(), wrong)

	handler.FailNext(1, hobolinktest.Failure{Status: 400, Message: "bad token " + handler.Options().Token})
	client, err = hobolink.New(hobolink.Config{
		BaseURL: "http://hobolink.test", Token: handler.Options().Token, HTTPClient: &http.Client{Transport: inProcess{handler}},
	})
	require.NoError(t, err)
	_, err = client.Data(t.Context(), lastHour(handler))
	require.ErrorContains(t, err, "bad token [redacted]")

	_, err = hobolink.New(hobolink.Config{Token: "two words"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "two words")
	_, err = hobolink.New(hobolink.Config{BaseURL: "https://a:hidden@b", Token: "x"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hidden")
}

func TestPassingFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]hobolinktest.Failure{
		"509":             {Status: hobolinktest.StatusBusy},
		"503 with a hint": {Status: http.StatusServiceUnavailable, RetryAfter: 40 * time.Second},
		"429":             {Status: http.StatusTooManyRequests, RetryAfter: 20 * time.Second},
		"html for json":   {Status: http.StatusOK, Body: "<html>"},
		"cut answer":      {Status: http.StatusOK, Body: `{"data":[`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, handler := newClient(t, hobolinktest.Options{})
				start := time.Now() // the bubble's clock, which stands still while there is work
				handler.FailNext(2, failure)
				answer, err := client.Data(t.Context(), lastHour(handler))
				require.NoError(t, err)
				require.Len(t, answer.Observations, 13*11)
				require.EqualValues(t, 3, handler.RequestCount())
				require.GreaterOrEqual(t, time.Since(start), 2*failure.RetryAfter, "the server's hint")
			})
		})
	}
}

// TestClassesOfFailures: what a retry can help is not final, and keeps the wait that
// the vendor asked for.
func TestClassesOfFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		failure hobolinktest.Failure
		class   string
		final   bool
	}{
		{hobolinktest.Failure{Status: 400, Code: "VAL-003"}, errclass.HobolinkRequest, true},
		{hobolinktest.Failure{Status: 404}, errclass.HobolinkRequest, true},
		{hobolinktest.Failure{Status: 401}, errclass.HobolinkToken, true},
		{hobolinktest.Failure{Status: 403}, errclass.HobolinkToken, true},
		{hobolinktest.Failure{Status: 408}, errclass.HobolinkBusy, false},
		{hobolinktest.Failure{Status: 429, RetryAfter: 11 * time.Second}, errclass.HobolinkRateLimit, false},
		{hobolinktest.Failure{Status: 500}, errclass.HobolinkBusy, false},
		{hobolinktest.Failure{Status: 503, RetryAfter: 12 * time.Second}, errclass.HobolinkBusy, false},
		{hobolinktest.Failure{Status: hobolinktest.StatusBusy}, errclass.HobolinkBusy, false},
		{hobolinktest.Failure{Status: 200, Body: "<html>"}, errclass.HobolinkAnswer, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, handler := newClient(t, hobolinktest.Options{Seed: uint64(test.failure.Status)})
			handler.FailNext(10, test.failure)
			_, err := client.Data(t.Context(), lastHour(handler))
			failure := jobtest.FailureOf(t, err)
			require.Equal(t, test.class, failure.Class)
			require.Equal(t, test.final, failure.Kind.Final(), failure.Class)
			require.Equal(t, test.failure.RetryAfter, failure.RetryAfter)
			tries := map[bool]int64{true: 1, false: 4}[test.final]
			require.Equal(t, tries, handler.RequestCount())
		})
	}
}

func TestLastingFailureIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, handler := newClient(t, hobolinktest.Options{})
		handler.FailNext(10, hobolinktest.Failure{Status: hobolinktest.StatusBusy, RetryAfter: 7 * time.Second})
		_, err := client.Data(t.Context(), lastHour(handler))
		failure := jobtest.FailureOf(t, err)
		require.False(t, failure.Kind.Final())
		require.Equal(t, errclass.HobolinkBusy, failure.Class)
		require.Equal(t, 7*time.Second, failure.RetryAfter)
		require.ErrorContains(t, err, "SYS-001")
		require.EqualValues(t, 4, handler.RequestCount())
	})
}

// TestRateLimitIsKept has several clients of one token at work: the server never
// has to refuse one of them, over three of its windows.
func TestRateLimitIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, handler := newClient(t, hobolinktest.Options{RateLimit: 20})
		var group sync.WaitGroup
		for range 4 {
			client, err := hobolink.New(hobolink.Config{
				BaseURL: "http://hobolink.test", Token: handler.Options().Token, HTTPClient: &http.Client{Transport: inProcess{handler}},
			})
			require.NoError(t, err)
			group.Go(func() {
				for range 15 {
					if _, err := client.Data(t.Context(), lastHour(handler)); err != nil {
						t.Errorf("refused: %v", err)
					}
				}
			})
		}
		group.Wait()
		refused := 0
		for _, request := range handler.Requests() {
			if request.Status != http.StatusOK {
				refused++
			}
		}
		require.Zero(t, refused)
		require.EqualValues(t, 60, handler.RequestCount())
	})
}

func TestTruncation(t *testing.T) {
	t.Parallel()
	client, handler := newClient(t, hobolinktest.Options{MaxResults: 10})
	answer, err := client.Data(t.Context(), lastHour(handler))
	require.NoError(t, err)
	require.Equal(t, hobolink.Answer{Truncated: true}, answer)

	_, handler = newClient(t, hobolinktest.Options{})
	client, err = hobolink.New(hobolink.Config{
		BaseURL: "http://hobolink.test", Token: handler.Options().Token, MaxBytes: 1000,
		HTTPClient: &http.Client{Transport: inProcess{handler}},
	})
	require.NoError(t, err)
	answer, err = client.Data(t.Context(), lastHour(handler))
	require.NoError(t, err)
	require.True(t, answer.Truncated, "an answer beyond the bound")
}

func TestUnreachableServerIsNamed(t *testing.T) {
	t.Parallel()
	address := "127.0.0.1:" + stacktest.FreePort(t)
	client, err := hobolink.New(hobolink.Config{BaseURL: "http://" + address, Token: "x", Tries: 2, RetryWait: time.Millisecond})
	require.NoError(t, err)
	_, err = client.Data(t.Context(), hobolink.Frame{Logger: "1", Start: noon, End: noon})
	require.ErrorContains(t, err, address)
	require.False(t, jobtest.FailureOf(t, err).Kind.Final())
	require.Equal(t, errclass.HobolinkUnreachable, jobtest.FailureOf(t, err).Class)
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var reached bool
	target := stacktest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	server := stacktest.Serve(t, http.RedirectHandler(target, http.StatusFound))
	client, err := hobolink.New(hobolink.Config{BaseURL: server, Token: "x"})
	require.NoError(t, err)
	_, err = client.Data(t.Context(), hobolink.Frame{Logger: "1", Start: noon, End: noon})
	require.True(t, jobtest.FailureOf(t, err).Kind.Final())
	require.False(t, reached)
}
