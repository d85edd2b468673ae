package exports_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// pointsVariable says how many values the benchmark writes and exports: a million without it.
const pointsVariable = "DENDRA_TEST_EXPORT_POINTS"

// BenchmarkExport exports the values of a table of ten fields, in the place of each of which
// a plain query of InfluxDB is measured too: one that selects all, and whose answer is read
// and thrown away. CPU seconds are those of this process, without InfluxDB's.
func BenchmarkExport(b *testing.B) {
	points := int64(1_000_000)
	if text := os.Getenv(pointsVariable); text != "" {
		var err error
		points, err = strconv.ParseInt(text, 10, 64)
		require.NoError(b, err)
	}
	d := newDesk(b, stacktest.Start(b))
	d.station(d.organization, "ridge", d.database)
	d.spec.Stations, d.spec.PartPoints = []string{"ridge"}, 1_000_000
	const fields, atOnce = 10, 10_000
	rows := points / fields
	for i := int64(0); i < rows; i += atOnce {
		var lines strings.Builder
		for n := i; n < min(i+atOnce, rows); n++ {
			values := make([]string, fields)
			for f := range values {
				values[f] = fmt.Sprintf("field_%d=%g", f, float64((n*7+int64(f)*13)%4000)/16)
			}
			lines.WriteString(line("station_ridge_source_t", d.spec.Start.Add(time.Duration(n)*time.Second), values...))
		}
		d.write(d.database, lines.String())
	}
	d.spec.End = d.spec.Start.Add(time.Duration(rows) * time.Second)
	if limit := d.spec.Start.AddDate(100, 0, 0); d.spec.End.After(limit) {
		b.Fatalf("%d values are too many", points)
	}
	measure := func(name string, do func()) {
		b.Run(name, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				do()
			}
			b.ReportMetric(float64(points)*float64(b.N)/b.Elapsed().Seconds(), "points/s")
			b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(0, "ns/op")
		})
	}
	measure("query", func() { d.stack.DiscardQuery(b, d.database, `SELECT * FROM "station_ridge_source_t"`) })
	for name, change := range map[string]func(){
		"csv":      func() { d.spec.Format, d.spec.Compression = exports.FormatCSV, exports.CompressionNone },
		"csv-gzip": func() { d.spec.Format, d.spec.Compression = exports.FormatCSV, exports.CompressionGzip },
		"csv-zstd": func() { d.spec.Format, d.spec.Compression = exports.FormatCSV, exports.CompressionZstd },
		"parquet":  func() { d.spec.Format = exports.FormatParquet },
		"netcdf":   func() { d.spec.Format = exports.FormatNetCDF },
	} {
		change()
		measure(name, func() {
			typ, run := d.newRun(platformtest.NewID())
			result, err := typ.Handle(b.Context(), run)
			require.NoError(b, err)
			require.Equal(b, points, result.Counts["values"])
		})
	}
}

// cpu is the processor time of this process.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
