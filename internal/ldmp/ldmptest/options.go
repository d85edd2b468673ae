package ldmptest

import (
	"strconv"
	"time"
)

// Options set up a [Server]. The zero value is complete.
type Options struct {
	// Ledger has the server remember each record that it sends and that is
	// acknowledged; it grows with them. Defaults to counting them.
	Ledger bool
	// Now is the clock of the world: there is no record after it. Defaults to
	// time.Now.
	Now func() time.Time
	// Seed chooses the values.
	Seed uint64
	// Stations are what there is. Defaults to [DefaultStations].
	Stations []Station
	// Window is how many records are sent ahead of their acknowledgement.
	// Defaults to 1, as the vendor's server does.
	Window int
}

// Station is a data logger.
type Station struct {
	Name string
	// UTCOffset is how far the logger's clock is ahead of UTC.
	UTCOffset time.Duration
	Tables    []Table
}

// Table is a table of a data logger.
type Table struct {
	Name string
	// Interval is the time between two records; at least a millisecond. Defaults
	// to 10 minutes.
	Interval time.Duration
	// Memory is how many of the newest records the server has. Defaults to all.
	Memory int64
	// ResetEvery has the numbers of the records begin again after so many.
	// Defaults to never.
	ResetEvery int64
	// Since is the time of the first record. Defaults to [Since].
	Since time.Time
}

// Since is the time of the first record of a table that sets none.
var Since = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// DefaultStations are the stations of a server that is given none: two in
// California, on Pacific Standard Time, whose tables are quick enough to watch.
func DefaultStations() []Station {
	const pacific = -8 * time.Hour
	return []Station{
		{Name: "angelo", UTCOffset: pacific, Tables: []Table{
			{Name: "TenSec", Interval: 10 * time.Second}, {Name: "OneMin", Interval: time.Minute},
		}},
		{Name: "sagehen", UTCOffset: pacific, Tables: []Table{
			{Name: "TenSec", Interval: 10 * time.Second}, {Name: "OneMin", Interval: time.Minute},
		}},
	}
}

// Stations makes n stations named stn_<i>, each with the given tables, and with
// UTC offsets from -8 hours on, an hour apart.
func Stations(n int, tables ...Table) []Station {
	stations := make([]Station, n)
	for i := range stations {
		stations[i] = Station{
			Name: "stn_" + strconv.Itoa(i), UTCOffset: time.Duration(i%20-8) * time.Hour, Tables: tables,
		}
	}
	return stations
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Window <= 0 {
		o.Window = 1
	}
	if len(o.Stations) == 0 {
		o.Stations = DefaultStations()
	}
	return o
}

func (t Table) withDefaults() Table {
	if t.Interval < time.Millisecond {
		t.Interval = 10 * time.Minute
	}
	if t.Since.IsZero() {
		t.Since = Since
	}
	return t
}
