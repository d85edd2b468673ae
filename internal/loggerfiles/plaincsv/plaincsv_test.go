package plaincsv_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/plaincsv"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// timeForms are forms of times, and how package time writes them. The letter T stands for the
// delimiter between two cells.
var timeForms = []struct {
	format string
	cells  int
	write  func(at time.Time, delimiter string) string
}{
	{"%Y-%m-%d %H:%M:%S", 1, func(at time.Time, _ string) string { return at.Format("2006-01-02 15:04:05.999999999") }},
	{"%d.%m.%Y %H:%M:%S", 2, func(at time.Time, d string) string {
		return at.Format("02.01.2006") + d + at.Format("15:04:05.999999999")
	}},
	{"%m/%d/%Y %I:%M:%S %p", 1, func(at time.Time, _ string) string { return at.Format("1/2/2006 3:04:05.999999999 PM") }},
	{"%d-%b-%Y %H:%M:%S", 1, func(at time.Time, _ string) string { return at.Format("02-Jan-2006 15:04:05.999999999") }},
	{"%Y %j %H:%M:%S", 1, func(at time.Time, _ string) string { return at.Format("2006 002 15:04:05.999999999") }},
	{"%Y-%m-%dT%H:%M:%S%z", 1, func(at time.Time, _ string) string {
		return at.Add(90*time.Minute).Format("2006-01-02T15:04:05.999999999") + "+01:30"
	}},
	{"%s", 1, func(at time.Time, _ string) string { return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()) }},
}

// TestReadIsWritten reads random tables by random mappings.
func TestReadIsWritten(t *testing.T) {
	t.Parallel()
	r := stacktest.Random(t)
	for range stacktest.Size(200, 10_000) {
		table := loggerfilestest.Random(r, "FP2", "IEEE4", "IEEE8", "LONG", "BOOL", "ASCII(16)")
		form := timeForms[r.IntN(len(timeForms))]
		delimiter := []string{",", ";", "\t", "|"}[r.IntN(4)]
		options := loggerfilestest.CSVOptions{
			Delimiter: delimiter, Headings: r.IntN(2) == 0, Missing: "-9999", DecimalComma: delimiter != "," && r.IntN(2) == 0,
			Time: func(at time.Time) string { return form.write(at, delimiter) }, TimeHeadings: []string{"day", "clock"}[:form.cells],
		}
		for range r.IntN(3) {
			options.Above = append(options.Above, `a line "above`)
		}
		mapping := plaincsv.Mapping{
			Delimiter: delimiter[0], Skip: len(options.Above), Headings: options.Headings, Time: options.TimeHeadings, TimeFormat: form.format,
			Zone: time.UTC, Missing: []string{"-9999", "n/a"}, DecimalComma: options.DecimalComma,
		}
		if !mapping.Headings {
			mapping.Time = []string{"1", "2"}[:form.cells]
		}
		reader, err := plaincsv.Open(bytes.NewReader(table.CSV(options)), mapping)
		if len(table.Rows) == 0 && !mapping.Headings {
			require.ErrorContains(t, err, "it ends before its first record")
			continue
		}
		require.NoError(t, err)
		for i, column := range reader.Table().Columns {
			if mapping.Headings {
				require.Equal(t, table.Columns[i].Name, column.Name)
			} else {
				require.Equal(t, fmt.Sprint(i+1+form.cells), column.Name)
			}
		}
		records, refused := loggerfilestest.Read(t, reader)
		require.Empty(t, refused)
		require.Len(t, records, len(table.Rows))
		table.Missing().Require(t, records, false, time.UTC)
	}
}

// TestDaylightSaving reads the nights in which clocks are set, by the name of their zone.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	file := "t,v\n"
	for _, shown := range []string{"2026-11-01 00:30", "2026-11-01 01:00", "2026-11-01 01:30", "2026-11-01 01:00", "2026-11-01 01:30", "2026-11-01 02:00", "2027-03-14 02:30"} {
		file += shown + ",1\n"
	}
	reader, err := plaincsv.Open(strings.NewReader(file), plaincsv.Mapping{Delimiter: ',', Headings: true, Time: []string{"t"}, TimeFormat: "%Y-%m-%d %H:%M", Zone: zone})
	require.NoError(t, err)
	records, refused := loggerfilestest.Read(t, reader)
	for i, record := range records {
		require.Equal(t, time.Date(2026, 11, 1, 7, 30+30*i, 0, 0, time.UTC), record.Time.UTC())
	}
	require.Len(t, records, 6)
	require.Len(t, refused, 1)
	require.EqualError(t, refused[0], "line 8: the time 2027-03-14 02:30:00 does not exist in America/Los_Angeles, where clocks were set forward")
}

func TestRefusedLines(t *testing.T) {
	t.Parallel()
	for line, reason := range map[string]string{
		"2026-02-29 00:00,1":   `line 2: the time "2026-02-29 00:00" is not of the declared form`,
		"2026-01-01 00:60,1":   `line 2: the time "2026-01-01 00:60" is not of the declared form`,
		"2026-01-01 25:00,1":   `line 2: the time "2026-01-01 25:00" is not of the declared form`,
		"2026-01-01 00:00x,1":  `line 2: the time "2026-01-01 00:00x" is not of the declared form`,
		"2026-01-01,1":         `line 2: the time "2026-01-01" is not of the declared form`,
		",1":                   `line 2: the time "" is not of the declared form`,
		"2026-01-01 00:00":     "line 2: it has 1 cells, and the first line has 2",
		"2026-01-01 00:00,1,2": "line 2: it has 3 cells, and the first line has 2",
		`2026-01-01 00:00,"1`:  "line 2: a quote is not closed",
	} {
		reader, err := plaincsv.Open(strings.NewReader("t,v\n"+line+"\n"), plaincsv.Mapping{Delimiter: ',', Headings: true, Time: []string{"t"}, TimeFormat: "%Y-%m-%d %H:%M", Zone: time.UTC})
		require.NoError(t, err)
		records, refused := loggerfilestest.Read(t, reader)
		require.Empty(t, records, line)
		require.Len(t, refused, 1)
		require.EqualError(t, refused[0], reason)
	}
}

func TestMappingThatDoesNotFit(t *testing.T) {
	t.Parallel()
	fits := plaincsv.Mapping{Delimiter: ',', Headings: true, Time: []string{"t"}, TimeFormat: "%Y-%m-%d", Zone: time.UTC}
	for _, c := range []struct {
		file, reason string
		change       func(*plaincsv.Mapping)
	}{
		{"a,v\n", `it has no column "t"; it has ["a" "v"]`, func(*plaincsv.Mapping) {}},
		{"t\n", "it has no column beside its time", func(*plaincsv.Mapping) {}},
		{"", "it ends before its first record", func(*plaincsv.Mapping) {}},
		{"x\n", "it ends before its first record", func(m *plaincsv.Mapping) { m.Skip = 1 }},
		{"\"t,v\n", "line 1: a quote is not closed", func(*plaincsv.Mapping) {}},
		{"t,\xffv\n", "line 1: the line is not UTF-8", func(*plaincsv.Mapping) {}},
		{"t,v\n", "the times need a time zone", func(m *plaincsv.Mapping) { m.Zone = nil }},
		{"t,v\n", "it has no whole date", func(m *plaincsv.Mapping) { m.TimeFormat = "%Y %H:%M" }},
		{"t,v\n", "%I and %p go together", func(m *plaincsv.Mapping) { m.TimeFormat = "%Y-%m-%d %I:%M" }},
		{"t,v\n", "%Q is not known", func(m *plaincsv.Mapping) { m.TimeFormat = "%Q" }},
		{"t,v\n", "it ends with %", func(m *plaincsv.Mapping) { m.TimeFormat = "%Y%" }},
	} {
		mapping := fits
		c.change(&mapping)
		_, err := plaincsv.Open(strings.NewReader(c.file), mapping)
		require.ErrorAs(t, err, new(*loggerfiles.FormatError), c.reason)
		require.ErrorContains(t, err, c.reason)
	}
}

func FuzzPlainCSV(f *testing.F) {
	f.Add([]byte("t,v\n2026-01-01 00:00,1\n"), "%Y-%m-%d %H:%M")
	f.Add([]byte("t;v\n1.1.26 12:00 PM;1,5\n"), "%d.%m.%y %I:%M %p")
	f.Fuzz(func(t *testing.T, file []byte, format string) {
		for _, delimiter := range []byte{',', ';'} {
			reader, err := plaincsv.Open(bytes.NewReader(file), plaincsv.Mapping{
				Delimiter: delimiter, Headings: len(file)%2 == 0, Time: []string{"t"}, TimeFormat: format, Zone: time.UTC, DecimalComma: true,
			})
			if err == nil {
				loggerfilestest.CheckRead(t, reader, len(file))
			}
		}
	})
}
