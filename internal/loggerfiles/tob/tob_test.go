package tob_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/tob"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

var pst = time.FixedZone("", -8*3600)

// read reads a file, and requires that its records are the first rows of a table.
func read(t *testing.T, table loggerfilestest.Table, file []byte) ([]loggerfiles.Record, []*loggerfiles.Refused) {
	t.Helper()
	reader, err := tob.Open(bytes.NewReader(file), pst)
	require.NoError(t, err)
	require.Equal(t, []string{table.Station, table.Name}, []string{reader.Table().Station, reader.Table().Name})
	records, refused := loggerfilestest.Read(t, reader)
	table.Require(t, records, true, pst)
	return records, refused
}

// TestReadIsWritten reads random tables as they were written, whole and cut.
func TestReadIsWritten(t *testing.T) {
	t.Parallel()
	r := stacktest.Random(t)
	for range stacktest.Size(100, 10_000) {
		table := loggerfilestest.Random(r, loggerfilestest.Types...).Widen()
		if !inRange(table) {
			continue
		}
		options := loggerfilestest.TOB3Options{Stamp: uint16(r.Uint32()), Complement: func(frame int) bool { return frame >= 3 }}
		for _, file := range [][]byte{table.TOB1(), table.TOB3(options)} {
			records, refused := read(t, table, file)
			require.Empty(t, refused)
			require.Len(t, records, len(table.Rows))

			cut := file[:r.IntN(len(file))]
			if reader, err := tob.Open(bytes.NewReader(cut), pst); err != nil {
				require.ErrorAs(t, err, new(*loggerfiles.FormatError))
			} else {
				records, refused := loggerfilestest.Read(t, reader)
				require.LessOrEqual(t, len(refused), 1)
				table.Require(t, records, true, pst)
			}
		}
	}
}

// inRange reports whether all rows have times that a frame can have: up to the year 2126.
func inRange(table loggerfilestest.Table) bool {
	for _, row := range table.Rows {
		if row.Shown.Year() > 2125 {
			return false
		}
	}
	return true
}

// small is a table of 40 records, in frames of ten.
func small() loggerfilestest.Table {
	table := loggerfilestest.Table{
		Station: "st", Name: "Ten", Interval: 10 * time.Minute,
		Columns: []loggerfilestest.Column{{Name: "A", Type: "FP2"}},
	}
	for i := range 40 {
		table.Rows = append(table.Rows, loggerfilestest.Row{
			Shown: time.Date(2026, 1, 1, 0, 10*i, 0, 0, time.UTC), Number: uint32(i),
			Values: []any{loggerfilestest.FP2{Magnitude: i, Decimals: 2}},
		})
	}
	return table.Widen()
}

// TestWrongFrames reads a file of which frames are damaged: the others are read.
func TestWrongFrames(t *testing.T) {
	t.Parallel()
	table := small()
	const frame = 16 + 10*18 + 5
	for name, c := range map[string]struct {
		change  func(frame []byte)
		reasons []string
		rows    int // that are left
	}{
		"whole":         {func([]byte) {}, nil, 40},
		"stamp":         {func(f []byte) { f[frame-1] ^= 1 }, []string{"the frame's validation stamp 17 is neither 273, that of the file, nor its complement"}, 30},
		"never written": {func(f []byte) { clear(f) }, nil, 30},
		"empty":         {func(f []byte) { f[frame-3] |= 0x40 }, nil, 30},
		"parts of a second": {func(f []byte) { binary.LittleEndian.PutUint32(f[4:], 10_000) },
			[]string{"the parts of a second in a frame's time make a second or more"}, 30},
		"minor without frames": {func(f []byte) { f[frame-3] |= 0x80 }, []string{"201 bytes of a frame are no minor frame"}, 30},
		"one minor frame within": {func(f []byte) {
			copy(f[frame-4:], []byte{16 + 5*18 + 5, 0x80, 0x11, 0x01})
		}, []string{"90 bytes of a frame are no minor frame"}, -1},
	} {
		file := table.TOB3(loggerfilestest.TOB3Options{Stamp: 0x0111})
		begin := len(file) - 4*frame
		c.change(file[begin+frame : begin+2*frame])
		reader, err := tob.Open(bytes.NewReader(file), pst)
		require.NoError(t, err)
		records, refused := loggerfilestest.Read(t, reader)
		var reasons []string
		for _, r := range refused {
			require.Equal(t, int64(begin+frame), r.Offset, name)
			reasons = append(reasons, r.Reason)
		}
		require.Equal(t, c.reasons, reasons, name)
		if c.rows < 0 {
			continue // what is taken for the header of the minor frame are values
		}
		kept := table
		if c.rows == 30 {
			kept.Rows = append(append([]loggerfilestest.Row(nil), table.Rows[:10]...), table.Rows[20:]...)
		}
		require.Len(t, records, c.rows, name)
		kept.Require(t, records, true, pst)
	}
}

// TestTableWithoutInterval has one record with a time in each frame.
func TestTableWithoutInterval(t *testing.T) {
	t.Parallel()
	file := bytes.Replace(small().TOB3(loggerfilestest.TOB3Options{}), []byte(`"10 MIN"`), []byte(`"0 MSEC"`), 1)
	reader, err := tob.Open(bytes.NewReader(file), pst)
	require.NoError(t, err)
	records, refused := loggerfilestest.Read(t, reader)
	require.Len(t, records, 4)
	require.Len(t, refused, 4)
	require.Contains(t, refused[0].Reason, "the table has no record interval")
}

func TestFP2(t *testing.T) {
	t.Parallel()
	const header = "TOB1,st,m,s,o,p,g,Ten\nSECONDS,A\n,\n,\nULONG,FP2\n"
	for word, want := range map[uint16]string{
		0x0000: "0", 0x8000: "0", 0x1F3F: "7999", 0x9F3F: "-7999", 0x6001: "0.001", 0xE3E8: "-1.000", 0x256B: "138.7",
		0x1F40: "NAN", 0x9FFE: "NAN", 0x1FFF: "INF", 0x9FFF: "-INF",
	} {
		row := binary.BigEndian.AppendUint16(make([]byte, 4), word)
		reader, err := tob.Open(bytes.NewReader(append([]byte(header), row...)), pst)
		require.NoError(t, err)
		record, err := reader.Next()
		require.NoError(t, err)
		require.Equal(t, []string{want}, record.Values, "%#04x", word)
		require.Equal(t, "1990-01-01T00:00:00-08:00", record.Time.Format(time.RFC3339))
		require.False(t, record.Numbered)
		_, err = reader.Next()
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestHeaderThatIsNone(t *testing.T) {
	t.Parallel()
	const names = "A\nV\nAvg\n"
	tob3 := func(second, types string) string {
		return "TOB3,st,m,s,o,p,g,t\n" + second + "\n" + names + types + "\n"
	}
	for file, reason := range map[string]string{
		"":                                      "it ends before header line 1",
		"TOA5,a\n":                              `its first cell is "TOA5", neither TOB1 nor TOB3`,
		"TOB1,a\n":                              "its first line has 2 cells, and there are eight",
		"TOB3,a\nx\n":                           "its second line has 1 cells, and there are six at least",
		"TOB1,st,m,s,o,p,g,t\nA\nV\nAvg\nFP2\n": "it has no column SECONDS",
		"TOB1,st,m,s,o,p,g,t\nSECONDS\nV\nAvg\nFP2\n":     "the column SECONDS does not have four bytes",
		"TOB1,st,m,s,o,p,g,t\nSECONDS\nV\nAvg\nFP9\n":     `column "SECONDS": the data type "FP9" is not known`,
		"TOB1,st,m,s,o,p,g,t\nSECONDS\nV,V\nAvg\nULONG\n": "its header has 1 names, 2 units, 1 processes and 1 data types",
		tob3("t,1 FORTNIGHT,100,1,1,Sec100Usec", "FP2"):   `the record interval "1 FORTNIGHT" of its header is none`,
		tob3("t,999999999 DAY,100,1,1,Sec100Usec", "FP2"): `the record interval "999999999 DAY" of its header is none`,
		tob3("t,1 SEC,8,1,1,Sec100Usec", "FP2"):           `the frame size "8" of its header is none`,
		tob3("t,1 SEC,100,1,x,Sec100Usec", "FP2"):         `the validation stamp "x" of its header is none`,
		tob3("t,1 SEC,100,1,1,SecUsec", "FP2"):            `the frame time resolution "SecUsec" of its header is none`,
		tob3("t,1 SEC,16,1,1,Sec100Usec", "FP2"):          "a record of 2 bytes does not fit into a frame of 16",
	} {
		_, err := tob.Open(bytes.NewReader([]byte(file)), pst)
		require.ErrorAs(t, err, new(*loggerfiles.FormatError), file)
		require.ErrorContains(t, err, reason)
	}
}

func FuzzTOB(f *testing.F) {
	f.Add(small().TOB1())
	f.Add(small().TOB3(loggerfilestest.TOB3Options{Stamp: 5}))
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // Not a secret.
	for range 20 {                        // Of all types.
		if table := loggerfilestest.Random(random, loggerfilestest.Types...).Widen(); inRange(table) {
			f.Add(table.TOB1())
			f.Add(table.TOB3(loggerfilestest.TOB3Options{Stamp: 7, Complement: func(frame int) bool { return frame >= 3 }}))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		reader, err := tob.Open(bytes.NewReader(file), time.UTC)
		if err == nil {
			loggerfilestest.CheckRead(t, reader, len(file))
		}
	})
}
