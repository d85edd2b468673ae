package influx_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

func TestGzipWrites(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			text, _ := io.ReadAll(unpacked)
			got = append(got, string(text))
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	writer, err := influx.NewWriter(influx.Config{URL: server.URL, Gzip: true})
	require.NoError(t, err)
	want := []string{"m v=1 1\n", "m v=2 2\nm v=3 3\n"}
	for _, lines := range want {
		require.NoError(t, writer.Write(t.Context(), target, []byte(lines)))
	}
	require.Equal(t, want, got)
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:8086": true, "http://[::1]:8086": true, "http://localhost:8086": true, "http://10.1.2.3": true,
		"http://192.168.0.9:8086": true, "http://[fd00::1]:8086": true, "http://8.8.8.8:8086": false, "https://[2001:4860::8888]": false,
	} {
		require.Equal(t, want, influx.Local(t.Context(), address), address)
	}
}

// BenchmarkWrite writes 5,000 points of eight fields to a server that reads them and
// does nothing: the difference is what compressing costs the client.
func BenchmarkWrite(b *testing.B) {
	var received int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	var body []byte
	const points = 5000
	for i := range points {
		fields := map[string]any{}
		for f := range 8 {
			fields["field_"+strconv.Itoa(f)] = float64((i*7+f*13)%4000) / 16
		}
		var err error
		body, err = influx.AppendPoint(body, influx.Point{Measurement: "station_angelo_source_tenmin", Fields: fields, Time: time.UnixMilli(1_700_000_000_000 + int64(i)*1000)}, influx.Milliseconds)
		require.NoError(b, err)
	}
	for name, packed := range map[string]bool{"plain": false, "gzip": true} {
		b.Run(name, func(b *testing.B) {
			writer, err := influx.NewWriter(influx.Config{URL: server.URL, Gzip: packed})
			require.NoError(b, err)
			for b.Loop() {
				require.NoError(b, writer.Write(b.Context(), target, body))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
			b.ReportMetric(float64(len(body))/float64(received), "times-smaller")
		})
	}
}
