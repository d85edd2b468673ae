// Command toa5 writes the month of March 2026 of an invented station, a row every ten minutes, as
// a TOA5 file of a data logger.
package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
)

func main() {
	table := loggerfilestest.Table{Station: "angelo", Name: "TenMin", Interval: 10 * time.Minute, Columns: []loggerfilestest.Column{
		{Name: "AirTC_Avg", Units: "Deg C", Process: "Avg", Type: "IEEE4"}, {Name: "Rain_mm_Tot", Units: "mm", Process: "Tot", Type: "IEEE4"},
	}}
	for at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC); at.Month() == time.March; at = at.Add(table.Interval) {
		n := len(table.Rows)
		warmth := 8 + 6*math.Sin(2*math.Pi*float64(at.Hour()-9)/24)
		table.Rows = append(table.Rows, loggerfilestest.Row{
			Shown: at, Number: uint32(n), //nolint:gosec // Some thousands.
			Values: []any{float32(math.Round(warmth*10) / 10), float32(n%97/96) * 0.2},
		})
	}
	if _, err := os.Stdout.Write(table.TOA5()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
