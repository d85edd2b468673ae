package imports_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

var midnight = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

// tenMinutes is a table of n rows.
func tenMinutes(n int) loggerfilestest.Table {
	table := loggerfilestest.Table{
		Station: "logger", Name: "TenMin", Interval: 10 * time.Minute,
		Columns: []loggerfilestest.Column{{Name: "AT_C_Avg", Units: "degC", Process: "Avg", Type: "FP2"}, {Name: "Note", Type: "ASCII(16)"}},
	}
	for i := range n {
		table.Rows = append(table.Rows, loggerfilestest.Row{
			Shown: midnight.Add(time.Duration(i) * 10 * time.Minute), Number: uint32(i),
			Values: []any{loggerfilestest.FP2{Magnitude: i % 8000, Decimals: 1}, "ok"},
		})
	}
	return table
}

// TestFormats imports the same rows from files of each format.
func TestFormats(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	table := tenMinutes(20)
	var zipped bytes.Buffer
	w := zip.NewWriter(&zipped)
	for name, file := range map[string][]byte{"in/b.dat": table.TOA5(), "out/x.csv": []byte("x")} {
		member, err := w.Create(name)
		require.NoError(t, err)
		_, err = member.Write(file)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	var gzipped bytes.Buffer
	g := gzip.NewWriter(&gzipped)
	_, err := g.Write(table.TOB1())
	require.NoError(t, err)
	require.NoError(t, g.Close())
	hobo := table
	hobo.Name = "10755220"
	for name, c := range map[string]struct {
		file     []byte
		change   func(spec *imports.FileSpec)
		field    string // names, units, process and type of the first
		numbered bool
	}{
		"toa5":   {table.TOA5(), func(*imports.FileSpec) {}, "AT_C_Avg degC Avg ", true},
		"zip":    {zipped.Bytes(), func(s *imports.FileSpec) { s.Folder = "in" }, "AT_C_Avg degC Avg ", true},
		"tob1gz": {gzipped.Bytes(), func(*imports.FileSpec) {}, "AT_C_Avg degC Avg xsd:float", true},
		"tob3":   {table.TOB3(loggerfilestest.TOB3Options{Stamp: 7}), func(*imports.FileSpec) {}, "AT_C_Avg degC Avg xsd:float", true},
		"hobo": {hobo.HOBO(loggerfilestest.HOBOOptions{Delimiter: ",", Title: true, Offset: "-08:00", Date: "01/02/06", Clock: "03:04:05 PM"}),
			func(s *imports.FileSpec) { s.Table, s.TimeZone = "TenMin", "" }, "AT_C_Avg_10755220-0 degC  ", false},
		"csv": {table.CSV(loggerfilestest.CSVOptions{Delimiter: ";", Headings: true, TimeHeadings: []string{"at"},
			Time: func(at time.Time) string { return at.Format("2006-01-02 15:04:05") }, DecimalComma: true}),
			func(s *imports.FileSpec) {
				s.Table = "TenMin"
				s.CSV = &imports.CSV{Delimiter: "semicolon", Time: []string{"at"}, TimeFormat: "%Y-%m-%d %H:%M:%S", DecimalSign: "comma"}
				s.Columns = []imports.Column{{Column: "AT_C_Avg", Name: "Temp", Units: "C", Type: "number"}, {Column: "Note"}}
			}, "Temp C  xsd:double", false},
	} {
		d := newDesk(t, st, "format"+name)
		c.change(&d.spec)
		info := d.upload(name, c.file)
		result, report, err := d.run("first")
		require.NoError(t, err, name)
		require.Equal(t, map[string]int64{"files": 1, "rows": 20, "stored": 20, "repeated": 0, "refused": 0}, result.Counts, name)
		require.Contains(t, result.Message, "nobody takes them")
		require.Equal(t, []string{info.ETag, d.spec.Key}, []string{report.ETag, report.Key})
		require.Equal(t, midnight.Add(8*time.Hour), report.First, name)
		require.Equal(t, midnight.Add(8*time.Hour+19*10*time.Minute), report.Last, name)
		messages := d.raw()
		require.Len(t, messages, 20)
		for i, m := range messages {
			at := midnight.Add(time.Duration(i) * 10 * time.Minute)
			require.Equal(t, []string{"csi", "angelo", "TenMin", "-08:00", `"` + d.spec.Key + `"`},
				[]string{m.Context.Source, m.Context.Station, m.Context.Table, string(m.Context.UTCOffset), string(m.Context.Other["file_name"])})
			require.Equal(t, []string{"angelo", "TenMin", at.Format("2006-01-02T15:04:05")}, []string{m.Payload.Station, m.Payload.Table, m.Payload.Time})
			if c.numbered {
				require.EqualValues(t, i, m.Payload.Number)
			} else {
				require.Equal(t, at.Add(8*time.Hour).UnixMilli(), m.Payload.Number)
			}
			require.Len(t, m.Payload.Fields, 2)
			f := m.Payload.Fields[0]
			require.Equal(t, c.field, strings.Join([]string{f.Name, f.Units, f.Process, f.Type}, " "))
			require.Equal(t, fmt.Sprintf("%.1f", float64(i)/10), fmt.Sprintf("%.1f", numberOf(t, f)))
			require.Equal(t, "ok", m.Payload.Fields[1].Value)
		}
	}
}

func numberOf(t *testing.T, f ldmp.Field) (value float64) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(f.Value, "+")), &value))
	return value
}

// TestSameFileTwice publishes a file once, also when a run loses its result.
func TestSameFileTwice(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t), "twice")
	info := d.upload("a.dat", tenMinutes(3).TOA5())
	first, _, err := d.run("first")
	require.NoError(t, err)

	result, report, err := d.run("second")
	require.NoError(t, err)
	require.Equal(t, "uploads/twice/a.dat was imported by run first: nothing published", result.Message)
	require.Equal(t, "first", report.ImportedBy)
	require.Zero(t, result.Counts["rows"])
	again, _, err := d.run("first")
	require.NoError(t, err)
	require.Equal(t, first.Counts, again.Counts)
	require.Len(t, d.raw(), 3)

	// With other content it is another file, which a run for the former one does not take.
	d.spec.ETag = info.ETag
	d.upload("a.dat", tenMinutes(4).TOA5())
	_, _, err = d.run("third")
	jobtest.RequireFailure(t, err, errclass.ObjectChanged, true, "uploads/twice/a.dat", info.ETag)
	d.spec.ETag = ""
	result, _, err = d.run("fourth")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"files": 1, "rows": 4, "stored": 1, "repeated": 3, "refused": 0}, result.Counts)
}

// TestGoesOn stops a run in the middle, and loses another one before its place is saved.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t), "goeson")
	file := strings.Replace(string(tenMinutes(2300).TOA5()), "\r\n\"2026-03-04 10:00:00\"", "\r\n\"no time\"", 1)
	d.upload("a.dat", []byte(file))
	run := d.newRun("first", jobtest.OnCheckpoint(func(r *jobtest.Run, c jobtest.Checkpoint) {
		if c.Progress.Done == 1000 {
			r.Stop()
		}
	}))
	result, err := d.jobType.Handle(t.Context(), run)
	require.ErrorIs(t, err, job.ErrStopped)
	require.EqualValues(t, 1000, result.Counts["rows"])

	result, err = d.jobType.Handle(t.Context(), run.NextAttempt())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"files": 1, "rows": 2300, "stored": 2299, "repeated": 0, "refused": 1}, result.Counts)
	messages := d.raw()
	require.Len(t, messages, 2299)
	require.EqualValues(t, 2299, messages[2298].Payload.Number)
	report := d.report(result)
	require.Equal(t, []imports.RefusedLine{{Line: 65, Offset: report.FirstRefused[0].Offset,
		Reason: `the time "no time" is not of the form YYYY-MM-DD HH:MM:SS`}}, report.FirstRefused)

	items := pipelinetest.Messages(t, d.client, pipeline.StreamQuarantine, "dendra.quarantine.v1.extract.bulk.goeson.csi.*")
	require.Len(t, items, 1)
	require.Equal(t, `uploads/goeson/a.dat, line 65: the time "no time" is not of the form YYYY-MM-DD HH:MM:SS`, items[0].Headers().Get(pipeline.HeaderReason))
	require.Equal(t, errclass.BadRecord, items[0].Headers().Get(pipeline.HeaderClass))
	require.Contains(t, string(items[0].Data()), `\"no time\",60,`)
}

// TestRowsThatComeAgain imports rows of one time that alternate: the last one of the file is
// the last one in the stream.
func TestRowsThatComeAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t), "again")
	table := tenMinutes(2)
	table.Rows[1].Shown, table.Rows[1].Number = table.Rows[0].Shown, table.Rows[0].Number
	for range 4 {
		table.Rows = append(table.Rows, table.Rows...)
	}
	d.upload("a.dat", table.TOA5())
	result, _, err := d.run("first")
	require.NoError(t, err)
	require.EqualValues(t, len(table.Rows), result.Counts["rows"])
	messages := d.raw()
	require.Equal(t, "0.1", messages[len(messages)-1].Payload.Fields[0].Value)
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t), "dry")
	table := tenMinutes(100)
	table.Rows = append(append(append([]loggerfilestest.Row(nil), table.Rows[:40]...), table.Rows[45:]...), table.Rows[99], table.Rows[7])
	d.upload("a.dat", append(table.TOA5(), "cut"...))
	d.spec.DryRun = true
	result, report, err := d.run("first")
	require.NoError(t, err)
	require.Contains(t, result.Message, "a dry run publishes nothing")
	require.Equal(t, []imports.FileReport{{
		Format: "toa5", Station: "logger", Table: "TenMin",
		Columns: []imports.ColumnReport{{Column: "AT_C_Avg", Field: "AT_C_Avg", Units: "degC"}, {Column: "Note", Field: "Note"}},
		Rows:    97, Refused: 1, First: midnight.Add(8 * time.Hour), Last: midnight.Add(8*time.Hour + 990*time.Minute),
		Report: cadence.Report{
			Cadence: 600, Duplicates: 1, OutOfOrder: 1, Gaps: 1,
			LongestGaps: []cadence.Gap{{From: midnight.Add(8*time.Hour + 390*time.Minute), To: midnight.Add(8*time.Hour + 450*time.Minute)}},
		},
	}}, report.Files)
	require.Equal(t, "the last line has no line end: the file may be cut", report.FirstRefused[0].Reason)
	require.EqualValues(t, 98, report.Rows)
	require.Empty(t, d.raw())
}

// TestBadFiles says what is wrong with a file, and where.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t), "bad")
	good := d.spec
	toa5 := tenMinutes(3).TOA5()
	for name, c := range map[string]struct {
		file   []byte
		change func(spec *imports.FileSpec)
		class  string
		parts  []string
	}{
		"unknown": {[]byte("a;b\n"), func(*imports.FileSpec) {}, errclass.InvalidFile, []string{"uploads/bad/unknown", `neither that of TOA5`, `"a;b"`}},
		"nozone":  {toa5, func(s *imports.FileSpec) { s.TimeZone = "" }, errclass.InvalidFile, []string{"the spec has to name time_zone"}},
		"column": {toa5, func(s *imports.FileSpec) { s.Columns = []imports.Column{{Column: "x"}} }, errclass.InvalidFile,
			[]string{`it has no column "x", which the spec names`}},
		"lines": {append(bytes.Clone(toa5), strings.Repeat("x\n", 5)...), func(s *imports.FileSpec) { s.MaxRefused = 4 }, errclass.InvalidFile,
			[]string{"more than 4 lines are refused; the first one: it has 1 cells, and the header names 4"}},
		"nothing": {append(bytes.Clone(tenMinutes(0).TOA5()), "x\n"...), func(*imports.FileSpec) {}, errclass.InvalidFile,
			[]string{"none of its 1 lines is a record: it has 1 cells"}},
		"damaged": {[]byte("\x1f\x8bxxxxxxxx"), func(*imports.FileSpec) {}, errclass.InvalidFile, []string{"not a readable gzip file"}},
		"bucket":  {toa5, func(s *imports.FileSpec) { s.Bucket = "media" }, errclass.NotAnUpload, []string{"upload buckets are uploads"}},
		"missing": {toa5, func(s *imports.FileSpec) { s.Key = "bad/none" }, errclass.ObjectMissing, []string{"uploads/bad/none"}},
	} {
		d.spec = good
		d.upload(name, c.file)
		c.change(&d.spec)
		_, _, err := d.run(name)
		jobtest.RequireFailure(t, err, c.class, c.class != errclass.ObjectMissing, c.parts...)
	}
}
