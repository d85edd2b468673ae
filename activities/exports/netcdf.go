package exports

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// netCDF is a file of NetCDF-3 with offsets of 64 bits ("NetCDF Users' Guide", appendix
// "NetCDF Classic and 64-bit Offset File Formats"), of the feature type timeSeries of the CF
// conventions, section 9: one station, one time coordinate, a variable for each field. A
// number that is missing is NaN, which InfluxDB does not store. A text that is missing is
// empty.
type netCDF struct {
	series  Series
	times   []float64 // milliseconds since 1970
	columns []netColumn
	held    int64
}

type netColumn struct {
	numbers []float64
	flags   []byte // of booleans
	texts   []string
	longest int // text
}

// Types and tags of the format.
const (
	ncByte, ncChar, ncDouble                   = 1, 2, 6
	ncDimension, ncVariable, ncAttribute       = 10, 11, 12
	noFlag                               uint8 = 0x80 // -128
	// maxExact is the largest integer that a double holds with all smaller ones.
	maxExact = 1 << 53
)

func newNetCDF(of Series) *netCDF {
	return &netCDF{series: of, columns: make([]netColumn, len(of.Columns))}
}

func (f *netCDF) row(at int64, values []jsontext.Value) error {
	const ms = 1_000_000
	f.times = append(f.times, float64(at/ms)+float64(at%ms)/ms)
	f.held += 8
	for i, v := range values {
		if err := f.add(i, v); err != nil {
			return err
		}
	}
	return nil
}

func (f *netCDF) add(i int, v jsontext.Value) error {
	c, of, missing := &f.columns[i], f.series.Columns[i], v.Kind() == 'n'
	switch of.Type {
	case influx.FieldBoolean:
		flag := noFlag
		if !missing {
			flag = map[bool]uint8{true: 1}[v.Kind() == 't']
		}
		c.flags = append(c.flags, flag)
		f.held++
		return wrongKind(of.Type, v, missing || v.Kind() == 't' || v.Kind() == 'f')
	case influx.FieldString:
		text, err := []byte(nil), error(nil)
		if !missing {
			text, err = jsontext.AppendUnquote(nil, v)
		}
		c.texts = append(c.texts, string(text))
		c.longest = max(c.longest, len(text))
		f.held += int64(len(text)) + 16
		return wrongType(of.Type, v, err)
	case influx.FieldInteger, influx.FieldFloat:
	}
	number, err := math.NaN(), error(nil)
	if !missing {
		number, err = strconv.ParseFloat(string(v), 64)
	}
	c.numbers = append(c.numbers, number)
	f.held += 8
	if n, _ := strconv.ParseInt(string(v), 10, 64); of.Type == influx.FieldInteger && (n > maxExact || n < -maxExact) {
		return job.Fail(errclass.ExportRefused, "field %s has the integer %s, and NetCDF-3 has none beyond 2^53: export it as CSV or Parquet", of.Field, v)
	}
	return wrongType(of.Type, v, err)
}

func (f *netCDF) bytes() int64 { return f.held }

// variable is a variable with its data, encoded.
type variable struct {
	name       string
	dimensions []int
	kind       int
	attributes []attribute
	data       []byte
}

type attribute struct {
	name  string
	value any // string, float64 or []byte
}

// close encodes the file: a header with dimensions, attributes and variables, then the data
// of each variable, in multiples of four bytes.
func (f *netCDF) close() ([]byte, error) {
	dimensions := []struct {
		name   string
		length int
	}{{"time", len(f.times)}, {"station_strlen", max(len(f.series.Station.Slug), 1)}}
	coordinates := "station"
	variables := []variable{
		{"time", []int{0}, ncDouble, []attribute{{"standard_name", "time"}, {"long_name", "time in UTC"},
			{"units", "milliseconds since 1970-01-01 00:00:00"}, {"calendar", "standard"}, {"axis", "T"}}, doubles(f.times)},
		{"station", []int{1}, ncChar, []attribute{{"cf_role", "timeseries_id"}, {"long_name", f.series.Station.Name}}, []byte(f.series.Station.Slug)},
	}
	for _, place := range []struct {
		name, standard, units string
		value                 *float64
	}{
		{"lat", "latitude", "degrees_north", f.series.Station.Latitude},
		{"lon", "longitude", "degrees_east", f.series.Station.Longitude},
		{"alt", "altitude", "m", f.series.Station.Altitude},
	} {
		if place.value != nil {
			coordinates += " " + place.name
			variables = append(variables, variable{place.name, nil, ncDouble,
				[]attribute{{"standard_name", place.standard}, {"units", place.units}}, doubles([]float64{*place.value})})
		}
	}
	taken := map[string]bool{"time": true, "station": true, "lat": true, "lon": true, "alt": true}
	for i, c := range f.series.Columns {
		v := variable{name: variableName(c.Field, taken), dimensions: []int{0}, attributes: []attribute{{"long_name", c.Field}}}
		if c.Units != "" {
			v.attributes = append(v.attributes, attribute{"units", c.Units})
		}
		v.attributes = append(v.attributes, attribute{"coordinates", coordinates})
		switch of := f.columns[i]; c.Type {
		case influx.FieldBoolean:
			v.kind, v.data = ncByte, of.flags
			v.attributes = append(v.attributes, attribute{"_FillValue", []byte{noFlag}}, attribute{"flag_values", []byte{0, 1}}, attribute{"flag_meanings", "false true"})
		case influx.FieldString:
			length := max(of.longest, 1)
			v.kind, v.dimensions = ncChar, []int{0, len(dimensions)}
			dimensions = append(dimensions, struct {
				name   string
				length int
			}{v.name + "_strlen", length})
			if int64(length)*int64(len(of.texts)) > maxPart {
				return nil, job.Fail(errclass.ExportRefused, "field %s has texts of up to %d bytes, which fill a NetCDF file: lower part_points", c.Field, length)
			}
			v.data = make([]byte, length*len(of.texts))
			for n, text := range of.texts {
				copy(v.data[n*length:], text)
			}
		case influx.FieldInteger, influx.FieldFloat:
			v.kind, v.data = ncDouble, doubles(of.numbers)
			v.attributes = append(v.attributes, attribute{"_FillValue", math.NaN()})
		}
		variables = append(variables, v)
	}
	h := &header{}
	h.WriteString("CDF\x02")
	h.number(0) // records: no dimension is without a bound
	h.list(ncDimension, len(dimensions))
	for _, d := range dimensions {
		h.text(d.name)
		h.number(d.length)
	}
	h.attributes([]attribute{{"Conventions", "CF-1.8"}, {"featureType", "timeSeries"},
		{"source", fmt.Sprintf("measurement %s of database %s", f.series.Measurement, f.series.Database)}})
	h.list(ncVariable, len(variables))
	begins := h.variables(variables)
	at := h.Len()
	out := h.Bytes()
	for i, v := range variables {
		binary.BigEndian.PutUint64(out[begins[i]:], uint64(at))
		at += padded(len(v.data))
	}
	all := make([]byte, 0, at)
	all = append(all, out...)
	for _, v := range variables {
		all = append(all, v.data...)
		all = append(all, make([]byte, padded(len(v.data))-len(v.data))...)
	}
	return all, nil
}

// variableName is a name that CF allows and that no other variable has.
func variableName(field string, taken map[string]bool) string {
	name := pipeline.SafeName(field)
	if first := name[0]; first == '_' || first >= '0' && first <= '9' {
		name = "v" + name
	}
	for base, n := name, 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	taken[name] = true
	return name
}

func doubles(numbers []float64) []byte {
	data := make([]byte, 0, 8*len(numbers))
	for _, x := range numbers {
		data = binary.BigEndian.AppendUint64(data, math.Float64bits(x))
	}
	return data
}

func padded(n int) int { return (n + 3) / 4 * 4 }

// header writes the parts of a header.
type header struct{ bytes.Buffer }

func (h *header) number(n int) { _ = binary.Write(h, binary.BigEndian, uint32(n)) }

func (h *header) raw(data []byte) {
	h.Write(data)
	h.Write(make([]byte, padded(len(data))-len(data)))
}

func (h *header) text(text string) {
	h.number(len(text))
	h.raw([]byte(text))
}

func (h *header) list(tag, n int) {
	h.number(tag)
	h.number(n)
}

func (h *header) attributes(list []attribute) {
	h.list(ncAttribute, len(list))
	for _, a := range list {
		h.text(a.name)
		switch value := a.value.(type) {
		case string:
			h.number(ncChar)
			h.text(value)
		case []byte:
			h.number(ncByte)
			h.text(string(value))
		case float64:
			h.number(ncDouble)
			h.number(1)
			h.raw(doubles([]float64{value}))
		}
	}
}

// variables gives the places where the offsets of their data go.
func (h *header) variables(list []variable) (begins []int) {
	for _, v := range list {
		h.text(v.name)
		h.number(len(v.dimensions))
		for _, d := range v.dimensions {
			h.number(d)
		}
		h.attributes(v.attributes)
		h.number(v.kind)
		h.number(padded(len(v.data)))
		begins = append(begins, h.Len())
		h.Write(make([]byte, 8))
	}
	return begins
}
