package ldmptest

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
)

// Reading is a record as the server knows it.
type Reading struct {
	Station string
	Table   string
	Number  int64
	// Time is the moment, in UTC; Clock is what the logger's clock showed, as if
	// it were UTC.
	Time, Clock time.Time
	// Values are numbers (float64) and strings by the field's name. A sensor that
	// failed, or a text that is empty, has none.
	Values map[string]any

	fields []ldmp.Field
}

// Record is the reading as a client gets it.
func (r Reading) Record() ldmp.Record {
	return ldmp.Record{
		Number: r.Number, Station: r.Station, Table: r.Table,
		Time:   r.Clock.Format("2006-01-02T15:04:05.999"),
		Fields: r.fields,
	}
}

// column is a field of every table.
type column struct {
	name, process, units string
	decimals             int
	value                func(n noise) float64
}

// columns are what the program of a small weather station stores.
var columns = []column{
	{"AT_C_Avg", "Avg", "°C", 3, func(n noise) float64 { return n.celsius() }},
	{"AT_C_Max", "Max", "°C", 3, func(n noise) float64 { return n.celsius() + n.at("max", 0) }},
	{"RH", "Smp", "%", 2, func(n noise) float64 { return min(100, 88-2.4*n.celsius()+9*n.at("rh", time.Hour)) }},
	{"WS_ms_S_WVT", "WVc", "meters/second", 3, func(n noise) float64 { return 7 * n.at("wind", 3*time.Hour) * n.at("gust", 0) }},
	{"WindDir_D1_WVT", "WVc", "Deg", 1, func(n noise) float64 { return 359.9 * n.at("direction", 5*time.Hour) }},
	{"Rain_mm_Tot", "Tot", "mm", 3, func(n noise) float64 {
		if n.at("cloud", 9*time.Hour) < 0.8 {
			return 0
		}
		return 0.254 * math.Floor(8*n.at("rain", 0))
	}},
	{"Slr_Wm2", "Avg", "W/m²", 2, func(n noise) float64 { return 980 * max(0, n.sun()) * (1 - 0.7*n.at("cloud", 9*time.Hour)) }},
	{"BattV_Min", "Min", "Volts", 2, func(n noise) float64 { return 12.1 + 1.6*max(0, n.sun()) + 0.1*n.at("battery", time.Hour) }},
}

// readingAt makes the reading of a table at a moment. One value in a few hundred
// is missing, as with a sensor that fails.
func readingAt(seed uint64, station Station, table Table, number int64, at time.Time) Reading {
	clock := ldmp.ClockAt(at, station.UTCOffset)
	r := Reading{
		Station: station.Name, Table: table.Name, Number: number, Time: at.UTC(), Clock: clock,
		Values: make(map[string]any, len(columns)+2), fields: make([]ldmp.Field, 0, len(columns)+2),
	}
	n := noise{seed: seed, series: station.Name + "\x00" + table.Name, time: at, clock: clock}
	for _, c := range columns {
		field := ldmp.Field{Name: c.name, Process: c.process, Type: "xsd:float", Units: c.units}
		if n.at("fails "+c.name, 0) < 0.003 {
			field.Value = "NAN"
		} else {
			field.Value = strconv.FormatFloat(c.value(n), 'f', c.decimals, 64)
			// What a client can know is what was sent.
			r.Values[c.name], _ = strconv.ParseFloat(field.Value, 64)
		}
		r.fields = append(r.fields, field)
	}
	hottest := clock.Add(-time.Duration(n.at("hottest", 0) * float64(table.Interval))).Truncate(time.Second).Format("2006-01-02T15:04:05")
	status := ldmp.Field{Name: "Status", Process: "Smp", Type: "xsd:string"}
	if n.at("status", 0) < 0.05 {
		status.Value = `low "battery" <12 V & cold`
		r.Values[status.Name] = status.Value
	}
	r.fields = append(r.fields, ldmp.Field{Name: "AT_C_TMx", Process: "TMx", Type: "xsd:dateTime", Value: hottest}, status)
	r.Values["AT_C_TMx"] = hottest
	return r
}

// noise gives reproducible numbers from 0 to 1 for a series and a moment.
type noise struct {
	seed   uint64
	series string
	time   time.Time
	clock  time.Time
}

// at is a number from 0 to 1: white noise for a zero period, else a line between
// one random value per period.
func (n noise) at(name string, period time.Duration) float64 {
	if period == 0 {
		return n.hash(name, n.time.UnixMilli())
	}
	position := float64(n.time.UnixMilli()) / float64(period.Milliseconds())
	whole, part := math.Modf(position)
	return n.hash(name, int64(whole))*(1-part) + n.hash(name, int64(whole)+1)*part
}

func (n noise) hash(name string, index int64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(n.series))
	_, _ = h.Write([]byte(name))
	// The finalizer of splitmix64 spreads the few bits that seed and index change.
	x := h.Sum64() ^ (n.seed+1)*0x9e3779b97f4a7c15 ^ uint64(index)*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// sun is 1 at noon of the logger's clock and negative at night.
func (n noise) sun() float64 {
	hour := float64(n.clock.Hour()) + float64(n.clock.Minute())/60
	return math.Cos((hour - 12) * math.Pi / 12)
}

func (n noise) celsius() float64 {
	return 11 + 6*n.sun() + 8*n.at("front", 60*time.Hour) + 0.4*n.at("jitter", 0)
}
