package hobolinktest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

type answer struct {
	Error      string             `json:"error"`
	Message    string             `json:"message"`
	MaxResults bool               `json:"max_results"`
	Data       []hobolinktest.Row `json:"data"`
}

func get(t *testing.T, h *hobolinktest.Handler, token string, values url.Values) (*http.Response, answer) {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/v1/data?"+values.Encode(), nil)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	var got answer
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &got), recorder.Body)
	return recorder.Result(), got
}

func frame(logger string, from, to time.Time) url.Values {
	return url.Values{
		"loggers":         {logger},
		"start_date_time": {from.Format(time.DateTime)},
		"end_date_time":   {to.Format(time.DateTime)},
	}
}

func TestAnswerHoldsTheLedger(t *testing.T) {
	t.Parallel()
	h := hobolinktest.NewHandler(hobolinktest.Options{Now: clock, Seed: 7})
	logger := h.Options().Loggers[0]
	from, to := noon.Add(-time.Hour), noon.Add(time.Hour)

	response, got := get(t, h, hobolinktest.DefaultToken, frame(logger, from, to))
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "60;w=60", response.Header.Get("RateLimit-Policy"))
	require.Equal(t, "59", response.Header.Get("RateLimit-Remaining"))
	require.False(t, got.MaxResults)

	want := h.Observations(logger, from, to)
	require.Len(t, want, 13*11) // both ends are included, and nothing lies after Now
	require.Len(t, got.Data, len(want))
	seen := map[string]bool{}
	for i, o := range want {
		require.Equal(t, o.Row(), got.Data[i])
		key := o.Sensor + o.DataType + o.Time.String()
		require.False(t, seen[key], "%s twice", key)
		seen[key] = true
	}

	again := hobolinktest.NewHandler(hobolinktest.Options{Now: clock, Seed: 7})
	require.Equal(t, want, again.Observations(logger, from, to))
	other := hobolinktest.NewHandler(hobolinktest.Options{Now: clock, Seed: 8})
	require.NotEqual(t, want, other.Observations(logger, from, to))
}

func TestWeatherIsPlausible(t *testing.T) {
	t.Parallel()
	h := hobolinktest.NewHandler(hobolinktest.Options{Now: clock, Interval: time.Hour})
	bounds := map[string][2]float64{
		"Temperature": {-25, 50}, "RH": {0, 100}, "Rain": {0, 10}, "Wind Speed": {0, 20}, "Gust Speed": {0, 50},
		"Wind Direction": {0, 360}, "Solar Radiation": {0, 1100}, "Barometric Pressure": {950, 1050}, "Battery": {3, 5},
	}
	for _, o := range h.Observations(h.Options().Loggers[1], noon.AddDate(-1, 0, 0), noon) {
		bound, known := bounds[o.MeasurementType]
		require.True(t, known, o.MeasurementType)
		require.GreaterOrEqual(t, o.Value, bound[0], "%+v", o)
		require.LessOrEqual(t, o.Value, bound[1], "%+v", o)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := hobolinktest.NewHandler(hobolinktest.Options{Now: clock})
	logger := h.Options().Loggers[0]
	good := frame(logger, noon.Add(-time.Hour), noon)
	without := func(name string) url.Values {
		values := frame(logger, noon.Add(-time.Hour), noon)
		values.Del(name)
		return values
	}
	for name, c := range map[string]struct {
		token  string
		values url.Values
		status int
		code   string
	}{
		"no token":       {"", good, 401, "ATH-001"},
		"wrong token":    {"wrong", good, 403, "ATH-001"},
		"no loggers":     {hobolinktest.DefaultToken, without("loggers"), 400, "VAL-001"},
		"no start":       {hobolinktest.DefaultToken, without("start_date_time"), 400, "VAL-001"},
		"no end":         {hobolinktest.DefaultToken, without("end_date_time"), 400, "VAL-001"},
		"unknown logger": {hobolinktest.DefaultToken, frame("1", noon, noon), 400, "VAL-002"},
		"end first":      {hobolinktest.DefaultToken, frame(logger, noon, noon.Add(-time.Second)), 400, "VAL-005"},
	} {
		t.Run(name, func(t *testing.T) {
			response, got := get(t, h, c.token, c.values)
			require.Equal(t, c.status, response.StatusCode)
			require.Equal(t, c.code, got.Error)
			require.NotEmpty(t, got.Message)
		})
	}
}

func TestTruncation(t *testing.T) {
	t.Parallel()
	h := hobolinktest.NewHandler(hobolinktest.Options{Now: clock, MaxResults: 100})
	logger := h.Options().Loggers[0]
	_, got := get(t, h, hobolinktest.DefaultToken, frame(logger, noon.Add(-time.Hour), noon))
	require.True(t, got.MaxResults)
	require.Len(t, got.Data, 100)
	require.True(t, h.Requests()[0].Truncated)
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hobolinktest.NewHandler(hobolinktest.Options{Now: clock, RateLimit: 2})
		values := frame(h.Options().Loggers[0], noon.Add(-time.Hour), noon)
		for range 2 {
			response, _ := get(t, h, hobolinktest.DefaultToken, values)
			require.Equal(t, http.StatusOK, response.StatusCode)
		}
		response, got := get(t, h, hobolinktest.DefaultToken, values)
		require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
		require.Equal(t, "SYS-002", got.Error)
		reset, err := strconv.Atoi(response.Header.Get("RateLimit-Reset"))
		require.NoError(t, err)
		<-time.After(time.Duration(reset) * time.Second) // of the bubble's clock: no time passes outside
		response, _ = get(t, h, hobolinktest.DefaultToken, values)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.EqualValues(t, 4, h.RequestCount())
	})
}

func TestFailNext(t *testing.T) {
	t.Parallel()
	h := hobolinktest.NewHandler(hobolinktest.Options{Now: clock})
	values := frame(h.Options().Loggers[0], noon.Add(-time.Hour), noon)
	h.FailNext(1, hobolinktest.Failure{Status: hobolinktest.StatusBusy, RetryAfter: 2 * time.Second})
	response, got := get(t, h, hobolinktest.DefaultToken, values)
	require.Equal(t, hobolinktest.StatusBusy, response.StatusCode)
	require.Equal(t, "SYS-001", got.Error)
	require.Equal(t, "2", response.Header.Get("Retry-After"))
	response, _ = get(t, h, hobolinktest.DefaultToken, values)
	require.Equal(t, http.StatusOK, response.StatusCode)
}
