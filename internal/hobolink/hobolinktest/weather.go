package hobolinktest

import (
	"hash/fnv"
	"math"
	"time"
)

// Observation is one measurement as the server knows it.
type Observation struct {
	Logger          string
	Sensor          string // <number>-<channel>
	Time            time.Time
	MeasurementType string
	DataType        string // CURRENT, MINIMUM, MAXIMUM, AVERAGE or STANDARD_DEVIATION
	Unit            string
	Value           float64
}

// dataTypeIDs are the vendor's numbers of data types.
var dataTypeIDs = map[string]string{
	"CURRENT": "1", "MINIMUM": "2", "MAXIMUM": "3", "AVERAGE": "4", "STANDARD_DEVIATION": "5",
}

// weather is the state of the sky at a logger at a moment.
type weather struct {
	noise
	sun     float64 // 0 at night, 1 at noon in summer
	cloud   float64 // 0 clear, 1 overcast
	celsius float64
	wind    float64 // m/s
}

// series is one stream of values of a logger.
type series struct {
	sensor   int // offset of the sensor's number from the logger's
	channel  string
	kind     string // sensor_measurement_type
	dataType string
	unit     string
	decimals int
	value    func(w weather) float64
}

// stationSeries are the streams of every logger: what a HOBO weather station
// with a temperature and humidity probe, rain gauge, anemometer, pyranometer,
// barometer and its own battery reports.
var stationSeries = []series{
	{1, "1", "Temperature", "AVERAGE", "°C", 2, func(w weather) float64 { return w.celsius }},
	{1, "1", "Temperature", "MINIMUM", "°C", 2, func(w weather) float64 { return w.celsius - 0.6*w.at("tmin", 0) }},
	{1, "1", "Temperature", "MAXIMUM", "°C", 2, func(w weather) float64 { return w.celsius + 0.6*w.at("tmax", 0) }},
	{1, "2", "RH", "CURRENT", "%", 1, func(w weather) float64 {
		return min(100, max(8, 95-2.6*(w.celsius-4)+12*w.cloud))
	}},
	{2, "1", "Rain", "CURRENT", "mm", 1, func(w weather) float64 {
		if w.cloud < 0.8 || w.at("drop", 0) < 0.6 {
			return 0
		}
		return math.Round(5*(w.cloud-0.8)*w.at("rain", 0)/0.2) * 0.2
	}},
	{3, "1", "Wind Speed", "AVERAGE", "m/s", 2, func(w weather) float64 { return w.wind }},
	{3, "2", "Gust Speed", "MAXIMUM", "m/s", 2, func(w weather) float64 { return w.wind * (1.3 + 0.9*w.at("gust", 0)) }},
	{3, "3", "Wind Direction", "AVERAGE", "°", 0, func(w weather) float64 { return 359 * w.at("direction", 6*time.Hour) }},
	{4, "1", "Solar Radiation", "CURRENT", "W/m²", 1, func(w weather) float64 { return 1020 * w.sun * (1 - 0.75*w.cloud) }},
	{5, "1", "Barometric Pressure", "CURRENT", "mbar", 1, func(w weather) float64 { return 1000 + 28*w.at("pressure", 18*time.Hour) }},
	{0, "1", "Battery", "CURRENT", "V", 2, func(w weather) float64 { return 3.9 + 0.3*w.sun*(1-w.cloud) + 0.04*w.at("battery", time.Hour) }},
}

// noise gives reproducible numbers from 0 to 1 for a logger and a moment.
type noise struct {
	seed   uint64
	logger string
	time   time.Time
}

// at is a number from 0 to 1: white noise for a zero period, else a curve that
// runs smoothly between one random value per period.
func (n noise) at(name string, period time.Duration) float64 {
	if period == 0 {
		return n.hash(name, n.time.UnixMilli())
	}
	position := float64(n.time.UnixMilli()) / float64(period.Milliseconds())
	whole := math.Floor(position)
	part := position - whole
	ease := part * part * (3 - 2*part)
	return n.hash(name, int64(whole))*(1-ease) + n.hash(name, int64(whole)+1)*ease
}

func (n noise) hash(name string, index int64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(n.logger + "\x00" + name))
	// The finalizer of splitmix64 spreads the few bits that seed and index change.
	x := h.Sum64() ^ (n.seed+1)*0x9e3779b97f4a7c15 ^ uint64(index)*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// weatherAt follows the sun of a place at 38° north and 120° west.
func weatherAt(seed uint64, logger string, t time.Time) weather {
	n := noise{seed: seed, logger: logger, time: t}
	dayOfYear := float64(t.YearDay())
	hour := math.Mod(float64(t.Hour())+float64(t.Minute())/60+float64(t.Second())/3600+16, 24)
	declination := -23.44 * math.Cos(2*math.Pi*(dayOfYear+10)/365.25) * math.Pi / 180
	const latitude = 38 * math.Pi / 180
	height := math.Sin(latitude)*math.Sin(declination) +
		math.Cos(latitude)*math.Cos(declination)*math.Cos((hour-12)*math.Pi/12)
	w := weather{noise: n, sun: max(0, height), cloud: n.at("cloud", 9*time.Hour)}
	season := -9 * math.Cos(2*math.Pi*(dayOfYear-15)/365.25)
	daily := (7 - 4*w.cloud) * math.Cos((hour-15)*math.Pi/12)
	w.celsius = 13 + season + daily + 5*(n.at("front", 60*time.Hour)-0.5) + 0.3*(n.at("jitter", 0)-0.5)
	w.wind = 6*n.at("wind", 3*time.Hour)*n.at("wind", 3*time.Hour) + 1.5*w.sun + 0.4*n.at("breath", 0)
	return w
}

func (s series) observation(logger string, base int64, w weather) Observation {
	scale := math.Pow10(s.decimals)
	return Observation{
		Logger:          logger,
		Sensor:          sensorSerial(base, s),
		Time:            w.time,
		MeasurementType: s.kind,
		DataType:        s.dataType,
		Unit:            s.unit,
		Value:           math.Round(s.value(w)*scale) / scale,
	}
}
