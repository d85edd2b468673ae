package influx_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

var target = influx.Target{Database: "d", Precision: influx.Milliseconds}

func TestKinds(t *testing.T) {
	t.Parallel()
	// Statuses and texts are those of InfluxDB 1.6 to 1.8.
	for name, c := range map[string]struct {
		status int
		text   string
		want   influx.Kind
	}{
		"type conflict":     {400, `partial write: field type conflict: input field "v" on measurement "m" is type string, already exists as type float dropped=1`, influx.KindPoison},
		"unparsable":        {400, `unable to parse 'm v=': missing field value`, influx.KindPoison},
		"partly unparsable": {400, `partial write: unable to parse 'x': missing fields dropped=0`, influx.KindPoison},
		"invalid tag key":   {400, `partial write: invalid tag key: input tag "time" on measurement "m" is invalid dropped=1`, influx.KindPoison},
		"conflict as 500":   {500, `field type conflict: input field "v"`, influx.KindPoison},
		"too old":           {400, `partial write: points beyond retention policy dropped=1`, influx.KindTooOld},
		"too big":           {413, `Request Entity Too Large`, influx.KindTooBig},
		"no database":       {404, `database not found: "d"`, influx.KindNoDatabase},
		"no policy":         {500, `retention policy not found: x`, influx.KindConfig},
		"database missing":  {400, `database is required`, influx.KindConfig},
		"another 400":       {400, `bad gateway configuration`, influx.KindConfig},
		"credentials":       {401, `authorization failed`, influx.KindConfig},
		"permission":        {403, `"u" user is not authorized to write to database "d"`, influx.KindConfig},
		"another server":    {404, `page not found`, influx.KindConfig},
		"moved":             {301, ``, influx.KindConfig},
		"too many series":   {400, `partial write: max-series-per-database limit exceeded: (1000000) dropped=2`, influx.KindLimits},
		"series as 500":     {500, `max-series-per-database limit exceeded: (1000000)`, influx.KindLimits},
		"too many values":   {400, `partial write: max-values-per-tag limit exceeded (100000/100000): measurement="m" tag="id" value="x" dropped=1`, influx.KindLimits},
		"values as 500":     {500, `max-values-per-tag limit exceeded (100000/100000): measurement="m" tag="id" value="x"`, influx.KindLimits},
		"limit as a name":   {400, `partial write: field type conflict: input field "max-series-per-database limit exceeded" on measurement "m" is type string, already exists as type float dropped=1`, influx.KindPoison},
		"limit as a value":  {400, `unable to parse 'm v=max-values-per-tag limit exceeded': invalid boolean`, influx.KindPoison},
		"cache is full":     {500, `engine: cache-max-memory-size exceeded: (1073741824/1073741824)`, influx.KindLimits},
		"shard is going":    {400, `partial write: shard 7 is pending deletion dropped=0`, influx.KindTransient},
		"shard is gone":     {500, `shard 7 is pending deletion and cannot be created again until finished`, influx.KindTransient},
		"age as a value":    {400, `unable to parse 'm v="points beyond retention policy"': invalid boolean`, influx.KindPoison},
		"another partial":   {400, `partial write: engine is closed dropped=3`, influx.KindTransient},
		"too many requests": {429, ``, influx.KindTransient},
		"unavailable":       {503, ``, influx.KindTransient},
		"write timed out":   {500, `timeout`, influx.KindTransient},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.Header().Set("X-Influxdb-Error", c.text)
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			writer, err := influx.NewWriter(influx.Config{URL: server.URL})
			require.NoError(t, err)
			err = writer.Write(t.Context(), target, []byte("m v=1 1\n"))
			var failure *influx.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, c.want, failure.Kind, "%s", failure.Kind)
			require.Equal(t, c.status, failure.Status)
			require.Equal(t, 7*time.Second, failure.RetryAfter)
			require.ErrorContains(t, err, server.URL)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// TestWhatAnAnswerIsAbout: the server as a whole, a name that a write or a statement
// gives, or single points.
func TestWhatAnAnswerIsAbout(t *testing.T) {
	t.Parallel()
	policy := influx.Target{Database: "d", RetentionPolicy: "later", Precision: influx.Seconds}
	write := func(w *influx.Writer) error { return w.Write(t.Context(), policy, []byte("m v=1 1\n")) }
	create := func(w *influx.Writer) error { return w.CreateDatabase(t.Context(), "d") }
	for name, c := range map[string]struct {
		status int
		text   string
		do     func(*influx.Writer) error
		kind   influx.Kind
		about  influx.About
	}{
		"no policy":              {500, `{"error":"retention policy not found: later"}`, write, influx.KindName, influx.AboutTarget},
		"no default policy":      {500, `{"error":"retention policy not found: autogen"}`, func(w *influx.Writer) error { return w.Write(t.Context(), target, nil) }, influx.KindConfig, influx.AboutTarget},
		"no policy, in part":     {400, `{"error":"partial write: retention policy not found: autogen"}`, func(w *influx.Writer) error { return w.Write(t.Context(), target, nil) }, influx.KindConfig, influx.AboutTarget},
		"no policy, of engine":   {500, `{"error":"engine: retention policy not found: autogen"}`, func(w *influx.Writer) error { return w.Write(t.Context(), target, nil) }, influx.KindConfig, influx.AboutTarget},
		"invalid name":           {200, `{"results":[{"statement_id":0,"error":"invalid name"}]}`, create, influx.KindName, influx.AboutTarget},
		"long name":              {200, `{"results":[{"statement_id":0,"error":"name too long"}]}`, create, influx.KindName, influx.AboutTarget},
		"statement refused":      {200, `{"results":[{"statement_id":0,"error":"not leader"}]}`, create, influx.KindConfig, influx.AboutTarget},
		"not authorized":         {403, `{"error":"\"u\" user is not authorized to write to database \"d\""}`, write, influx.KindConfig, influx.AboutTarget},
		"nobody knows why":       {400, `{"error":"odd"}`, write, influx.KindConfig, influx.AboutPoints},
		"an internal error":      {500, `{"error":"panic"}`, write, influx.KindTransient, influx.AboutPoints},
		"too busy":               {503, `{"error":"busy"}`, write, influx.KindTransient, influx.AboutServer},
		"credentials":            {401, `{"error":"authorization failed"}`, write, influx.KindConfig, influx.AboutServer},
		"another server":         {404, `page not found`, write, influx.KindConfig, influx.AboutServer},
		"at a limit":             {400, `{"error":"partial write: max-values-per-tag limit exceeded"}`, write, influx.KindLimits, influx.AboutServer},
		"credentials, to create": {401, `{"error":"authorization failed"}`, create, influx.KindConfig, influx.AboutServer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.text)
			}))
			defer server.Close()
			writer, err := influx.NewWriter(influx.Config{URL: server.URL})
			require.NoError(t, err)
			var failure *influx.Error
			require.ErrorAs(t, c.do(writer), &failure)
			require.Equal(t, c.kind, failure.Kind, "%s", failure.Kind)
			require.Equal(t, c.about, failure.About())
		})
	}
}

func TestWriteSendsTheTarget(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	writer, err := influx.NewWriter(influx.Config{URL: server.URL + "/", Username: "loader", Password: "pass"})
	require.NoError(t, err)
	require.NoError(t, writer.Write(t.Context(), influx.Target{Database: "a b", RetentionPolicy: "r", Precision: influx.Seconds}, []byte("m v=1 1\n")))
	require.Equal(t, "/write?db=a+b&precision=s&rp=r", got.URL.RequestURI())
	require.Equal(t, "m v=1 1\n", string(body))
	user, pass, ok := got.BasicAuth()
	require.True(t, ok)
	require.Equal(t, "loader:pass", user+":"+pass)

	require.Error(t, writer.Write(t.Context(), influx.Target{Database: "d", Precision: "xx"}, nil))
}

func TestDeadServerIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	writer, err := influx.NewWriter(influx.Config{URL: "http://" + address})
	require.NoError(t, err)
	err = writer.Write(t.Context(), target, []byte("m v=1 1\n"))
	var failure *influx.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, influx.KindTransient, failure.Kind)
	require.ErrorContains(t, err, "influx http://"+address+": ")
}

func TestSlowServerIsTransient(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	writer, err := influx.NewWriter(influx.Config{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	err = writer.Write(t.Context(), target, []byte("m v=1 1\n"))
	var failure *influx.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, influx.KindTransient, failure.Kind)
	require.ErrorContains(t, err, "no answer within 20ms")
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:8086", "ftp://a", "http://", "http://u:secret@h:1", "http://h?x=1"} {
		_, err := influx.NewWriter(influx.Config{URL: bad})
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := influx.NewWriter(influx.Config{URL: "http://127.0.0.1:8086"})
	require.NoError(t, err)
}
