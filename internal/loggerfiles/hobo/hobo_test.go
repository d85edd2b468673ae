package hobo_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/hobo"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestReadIsWritten reads random tables as HOBOware's preferences write them.
func TestReadIsWritten(t *testing.T) {
	t.Parallel()
	r := stacktest.Random(t)
	for range stacktest.Size(100, 10_000) {
		table := loggerfilestest.Random(r, "FP2", "IEEE4", "IEEE8", "LONG")
		table.Name = "10755220"
		for i := range table.Columns {
			table.Columns[i].Units = "°C"
		}
		for i := range table.Rows {
			table.Rows[i].Shown = table.Rows[i].Shown.Truncate(time.Second)
			if year := table.Rows[i].Shown.Year(); year > 2068 { // two digits would be another year
				table.Rows[i].Shown = table.Rows[i].Shown.AddDate(2000+year%100-year, 0, 0)
			}
		}
		order, date := hobo.OrderMDY, "01/02/06"
		switch r.IntN(4) {
		case 0:
			order, date = hobo.OrderDMY, "02.01.2006"
		case 1:
			order, date = hobo.OrderYMD, "06-01-02"
		case 2:
			date = "2006-01-02"
		}
		clock := []string{"03:04:05 PM", "15:04:05", "03:04:05.0 PM"}[r.IntN(3)]
		delimiter := []string{",", ";", "\t"}[r.IntN(3)]
		file := table.HOBO(loggerfilestest.HOBOOptions{
			Delimiter: delimiter, Title: r.IntN(2) == 0, Offset: "-07:00", TwoTimes: r.IntN(2) == 0, Date: date, Clock: clock, Events: r.IntN(2) == 0,
		})
		reader, err := hobo.Open(bytes.NewReader(file), nil, order)
		require.NoError(t, err, string(file))
		require.Equal(t, "10755220", reader.Table().Name)
		require.Equal(t, loggerfiles.Column{Name: "Value_0_10755220-0", Units: "°C"}, reader.Table().Columns[0])
		records, refused := loggerfilestest.Read(t, reader)
		require.Empty(t, refused)
		require.Len(t, records, len(table.Rows))
		for i := range records { // the column of an event is one too
			records[i].Values = records[i].Values[:len(table.Columns)]
		}
		table.Require(t, records, false, time.FixedZone("", -7*3600))
	}
}

// TestHeadings reads headings of other exports.
func TestHeadings(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"Line#,Date,\"Current (S-FS-TRMSA 10564073:10518723-1), A, Jon's AC\",\"Battery (U30 BATTERY 10564073:10564073-B), V\"\n276,09/01/14 16:10:00,8.890,4.54\n": "10564073 Current_10518723-1 A 8.890 2014-09-01T16:10:00-08:00",
		"Date Time\tTemp (°C)  #9724974\tHost Connected\n09/01/14 16:10\t21.5\n":                                                                                    "9724974 Temp °C 21.5 2014-09-01T16:10:00-08:00",
		"Plot Title: x\n#,\"Date Time, GMT+05:45\",\"RH, %\"\n1,9/1/2014 4:10,55\n":                                                                                 " RH % 55 2014-09-01T04:10:00+05:45",
	} {
		require.True(t, hobo.Looks([]byte(file)), file)
		reader, err := hobo.Open(strings.NewReader(file), time.FixedZone("", -8*3600), hobo.OrderMDY)
		require.NoError(t, err)
		record, err := reader.Next()
		require.NoError(t, err)
		column := reader.Table().Columns[0]
		require.Equal(t, want, strings.Join([]string{reader.Table().Name, column.Name, column.Units, record.Values[0], record.Time.Format(time.RFC3339)}, " "))
	}
	for _, file := range []string{"", "Date,Temp\n1,2\n", "a,b\n1,2\n", "\"TOA5\",\"x\"\n"} {
		require.False(t, hobo.Looks([]byte(file)), file)
	}
	for _, file := range []string{"", "a,b\n1,2\n", "\"Plot Title: x", "Plot Title: x\n"} {
		_, err := hobo.Open(strings.NewReader(file), time.UTC, hobo.OrderMDY)
		require.ErrorAs(t, err, new(*loggerfiles.FormatError), file)
	}
	_, err := hobo.Open(strings.NewReader("Date Time,\"Temp, C\"\n"), nil, hobo.OrderMDY)
	require.EqualError(t, err, "not a readable hobo file: its header has no offset from GMT: the import has to name the time zone")
}

func TestRefusedLines(t *testing.T) {
	t.Parallel()
	for line, reason := range map[string]string{
		"1,13/01/26 00:00:00,2":      `line 2: the time "13/01/26 00:00:00" is not a date in the order mdy and a time`,
		"1,02/29/26 00:00:00,2":      `line 2: the time "02/29/26 00:00:00" is not a date in the order mdy and a time`,
		"1,01/01/26 13:00:00 PM,2":   `line 2: the time "01/01/26 13:00:00 PM" is not a date in the order mdy and a time`,
		"1,01/01/26 00:00:61,2":      `line 2: the time "01/01/26 00:00:61" is not a date in the order mdy and a time`,
		"1,01/01/26,2":               `line 2: the time "01/01/26" is not a date in the order mdy and a time`,
		"1,01/01/26 00:00:00,2,3":    "line 2: it has 4 cells, and the header names 3",
		"1":                          "line 2: it has 1 cells, and the header names 3",
		"1,01/01/26 00:00:00,\"2":    "line 2: a quote is not closed",
		"1,01/01/26 00:00:00 a PM,2": `line 2: the time "01/01/26 00:00:00 a PM" is not a date in the order mdy and a time`,
	} {
		reader, err := hobo.Open(strings.NewReader("#,\"Date Time, GMT-07:00\",\"Temp, C\"\n"+line+"\n"), nil, hobo.OrderMDY)
		require.NoError(t, err)
		records, refused := loggerfilestest.Read(t, reader)
		require.Empty(t, records, line)
		require.Len(t, refused, 1, line)
		require.EqualError(t, refused[0], reason)
	}
}

func FuzzHOBO(f *testing.F) {
	f.Add([]byte("Plot Title: x\n#,\"Date Time, GMT+05:45\",\"RH, % (LGR S/N: 1, SEN S/N: 2)\"\n1,9/1/2014 4:10 PM,55\n"))
	f.Add([]byte("Line#,Date,\"Current (S-FS-TRMSA 1:2-1), A\"\n276,09/01/14 16:10:00,8.890\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_ = hobo.Looks(file)
		reader, err := hobo.Open(bytes.NewReader(file), time.UTC, hobo.OrderMDY)
		if err == nil {
			loggerfilestest.CheckRead(t, reader, len(file))
		}
	})
}
