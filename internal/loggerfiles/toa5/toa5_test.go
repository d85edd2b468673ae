package toa5_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/toa5"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

var pst = time.FixedZone("", -8*3600)

// TestReadIsWritten reads random tables as they were written, whole and cut.
func TestReadIsWritten(t *testing.T) {
	t.Parallel()
	r := stacktest.Random(t)
	for range stacktest.Size(100, 10_000) {
		table := loggerfilestest.Random(r, loggerfilestest.Types...)
		file := table.TOA5()
		reader, err := toa5.Open(bytes.NewReader(file), pst)
		require.NoError(t, err)
		got := reader.Table()
		require.Equal(t, []string{table.Station, table.Name}, []string{got.Station, got.Name})
		for i, column := range got.Columns {
			require.Equal(t, loggerfiles.Column{Name: table.Columns[i].Name, Units: table.Columns[i].Units, Process: table.Columns[i].Process}, column)
		}
		records, refused := loggerfilestest.Read(t, reader)
		require.Empty(t, refused)
		require.Len(t, records, len(table.Rows))
		table.Require(t, records, true, pst)

		if reader, err = toa5.Open(bytes.NewReader(file[:r.IntN(len(file))]), pst); err != nil {
			require.ErrorAs(t, err, new(*loggerfiles.FormatError))
			continue
		}
		records, refused = loggerfilestest.Read(t, reader)
		require.LessOrEqual(t, len(refused), 1)
		table.Require(t, records, true, pst)
	}
}

const header = `"TOA5","st","CR1000","1","os","prog","1","Ten"` + "\r\n" +
	`"TIMESTAMP","RECORD","A"` + "\r\n" + `"TS","RN","V"` + "\r\n" + `"","","Avg"` + "\r\n"

func TestRefusedLines(t *testing.T) {
	t.Parallel()
	for line, reason := range map[string]string{
		`"2026-02-29 00:00:00",1,2`:          `line 5: the time "2026-02-29 00:00:00" is not of the form YYYY-MM-DD HH:MM:SS`,
		`"2026-01-01 24:10:00",1,2`:          `line 5: the time "2026-01-01 24:10:00" is after 24:00:00`,
		`"2026-01-01 00:00:00",1`:            "line 5: it has 2 cells, and the header names 3",
		`"2026-01-01 00:00:00",1,2,3`:        "line 5: it has 4 cells, and the header names 3",
		`"2026-01-01 00:00:00",-1,2`:         `line 5: the record number "-1" is none`,
		`"2026-01-01 00:00:00",x,2`:          `line 5: the record number "x" is none`,
		`"2026-01-01 00:00:00",1,"2`:         "line 5: a quote is not closed",
		`"2026-01-01 00:00:00"x,1,2`:         "line 5: something follows a quoted cell",
		"\"2026-01-01 00:00:00\",1,\"\xff\"": "line 5: the line is not UTF-8: the import has to name the file's encoding",
		`0,1,2`:                              `line 5: the time "0" is not of the form YYYY-MM-DD HH:MM:SS`,
	} {
		reader, err := toa5.Open(bytes.NewReader([]byte(header+line+"\r\n"+`"2026-01-01 24:00:00",7,NAN`+"\n")), pst)
		require.NoError(t, err)
		records, refused := loggerfilestest.Read(t, reader)
		require.Len(t, refused, 1, line)
		require.EqualError(t, refused[0], reason)
		require.Equal(t, line, string(refused[0].Raw))
		require.Len(t, records, 1)
		require.Equal(t, "2026-01-02T00:00:00-08:00", records[0].Time.Format(time.RFC3339))
		require.Equal(t, loggerfiles.Position{Line: 6, Offset: int64(len(header) + len(line) + 2)}, records[0].Position)
	}
}

func TestHeaderThatIsNone(t *testing.T) {
	t.Parallel()
	for file, reason := range map[string]string{
		"":                     "it ends before header line 1",
		"\"TOA5\",\"st\"\n":    "header line 1",
		header[:60]:            "header line 2: the last line has no line end",
		"x\ny\nz\nu\n":         "its first line is not of eight cells",
		header[:len(header)-9]: "header line 4",
		`TOA5,a,b,c,d,e,f,g` + "\nTIMESTAMP,A\nTS\n\"\",\"\"\n": "its header has 2 names, 1 units and 2 processes",
		`TOA5,a,b,c,d,e,f,g` + "\nRECORD,A\nRN,V\n\"\",\"\"\n":  "it has no column TIMESTAMP",
	} {
		_, err := toa5.Open(bytes.NewReader([]byte(file)), pst)
		require.ErrorAs(t, err, new(*loggerfiles.FormatError), file)
		if reason != "header line 1" {
			require.ErrorContains(t, err, reason)
		}
	}
}

// TestFilesPutTogether reads two files in one, of which the second has other columns.
func TestFilesPutTogether(t *testing.T) {
	t.Parallel()
	second := `"TOA5","st","CR1000","1","os","prog","2","Hour"` + "\r\n\"TIMESTAMP\",\"RECORD\",\"B\"\r\n\"TS\",\"RN\",\"m\"\r\n\"\",\"\",\"Smp\"\r\n"
	reader, err := toa5.Open(bytes.NewReader([]byte(header+`"2026-01-01 00:00:00",1,2`+"\n"+second+`"2026-01-01 01:00:00",1,3`+"\n")), pst)
	require.NoError(t, err)
	for _, want := range []string{"Ten A 2", "Hour B 3"} {
		record, err := reader.Next()
		require.NoError(t, err)
		require.Equal(t, want, reader.Table().Name+" "+reader.Table().Columns[0].Name+" "+record.Values[0])
	}
}

func FuzzTOA5(f *testing.F) {
	f.Add([]byte(header + `"2026-01-01 00:00:00",1,2` + "\r\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		reader, err := toa5.Open(bytes.NewReader(file), time.UTC)
		if err == nil {
			loggerfilestest.CheckRead(t, reader, len(file))
		}
	})
}
