package endtoend_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// planted is a frame that comes in the place of a record, and what has to become
// of it.
type planted struct {
	station, table string
	frame          []byte

	// stage and class are those in quarantine; empty if it does not get there.
	stage pipeline.Stage
	class string
	// record is what the raw stream gets; nil if the frame is none.
	record *ldmp.Record
	// values are those of its point, if it makes one, at a time.
	values map[string]any
	at     time.Time
}

// slot is where a frame is planted: a reading, and the one before it.
type slot struct{ before, reading ldmptest.Reading }

// planters make frames in the place of a record. Each gives others every time.
var planters = map[string]func(random *rand.Rand, p slot) planted{
	"cut off": func(random *rand.Rand, s slot) planted {
		record := s.reading.Record()
		frame := ldmptest.Encode(record)
		// Behind station, table and time: two frames that are cut off before are equal,
		// and so one item in quarantine.
		_, rest, _ := bytes.Cut(frame, []byte(record.Time))
		return badRecord(frame[:len(frame)-1-random.IntN(len(rest))])
	},
	"no XML": func(random *rand.Rand, _ slot) planted {
		return badRecord([]byte("server busy " + strconv.FormatUint(random.Uint64(), 36)))
	},
	"unknown station": func(_ *rand.Rand, s slot) planted {
		record := s.reading.Record()
		record.Station = "stn_99"
		return planted{frame: ldmptest.Encode(record), stage: pipeline.StageExtract, class: errclass.UnknownTable}
	},
	"unknown table": func(_ *rand.Rand, s slot) planted {
		record := s.reading.Record()
		record.Table = "Public"
		return planted{frame: ldmptest.Encode(record), stage: pipeline.StageExtract, class: errclass.UnknownTable}
	},
	"no number": func(_ *rand.Rand, s slot) planted {
		record := s.reading.Record()
		record.Fields = slices.Clone(record.Fields)
		record.Fields[2].Value = "#VALUE!"
		values := maps.Clone(s.reading.Values)
		delete(values, record.Fields[2].Name)
		return planted{
			frame: ldmptest.Encode(record), stage: pipeline.StagePrepare, class: errclass.BadValue,
			record: &record, values: values, at: s.reading.Time,
		}
	},
	"two fields of one name": func(_ *rand.Rand, s slot) planted {
		record := s.reading.Record()
		record.Fields = append(slices.Clone(record.Fields), ldmp.Field{Name: record.Fields[0].Name, Type: "xsd:float", Value: "1"})
		return planted{
			frame: ldmptest.Encode(record), stage: pipeline.StagePrepare, class: errclass.BadValue,
			record: &record, values: s.reading.Values, at: s.reading.Time,
		}
	},
	"time in the future": func(random *rand.Rand, s slot) planted {
		record := s.reading.Record()
		record.Time = time.Now().Add(time.Duration(48+random.IntN(500)) * time.Hour).UTC().Format("2006-01-02T15:04:05")
		return planted{
			frame: ldmptest.Encode(record), stage: pipeline.StagePrepare, class: errclass.FutureTimestamp, record: &record,
		}
	},
	// What follows is odd, but good.
	"clock that began again": func(random *rand.Rand, s slot) planted {
		clock := time.Date(1990, 1, 1, 0, random.IntN(600), random.IntN(60), 0, time.UTC)
		return s.moved(clock.Add(s.reading.Time.Sub(s.reading.Clock)))
	},
	"late": func(random *rand.Rand, s slot) planted {
		return s.moved(s.reading.Time.Add(-time.Duration(random.IntN(1200))*time.Minute - 7*time.Second))
	},
	"correction of the one before": func(random *rand.Rand, s slot) planted {
		record := s.before.Record()
		record.Number = s.reading.Number
		record.Fields = slices.Clone(record.Fields)
		field := &record.Fields[0]
		corrected := 100 + float64(random.IntN(1000))/8
		field.Value = strconv.FormatFloat(corrected, 'f', 3, 64)
		values := maps.Clone(s.before.Values)
		values[field.Name] = corrected
		return planted{frame: ldmptest.Encode(record), record: &record, values: values, at: s.before.Time}
	},
}

func badRecord(frame []byte) planted {
	return planted{frame: frame, stage: pipeline.StageExtract, class: errclass.BadRecord}
}

// moved is the record with another time.
func (s slot) moved(at time.Time) planted {
	record := s.reading.Record()
	record.Time = at.Add(s.reading.Clock.Sub(s.reading.Time)).Format("2006-01-02T15:04:05")
	return planted{frame: ldmptest.Encode(record), record: &record, values: s.reading.Values, at: at}
}

// plant has frames come in the place of records at any time, every kind of them at
// least times times, and never two in a row.
func (l *loggers) plant(random *rand.Rand, times int) {
	l.Helper()
	taken := map[string]bool{}
	tables := l.Options().Stations[0].Tables
	plant := func(planter func(*rand.Rand, slot) planted) {
		for {
			station := l.Options().Stations[random.IntN(len(l.Options().Stations))].Name
			table := tables[random.IntN(len(tables))].Name
			// Neither the first nor the last, and far from each other.
			nth := random.IntN(int(l.to.Sub(l.from)/recordInterval)/4-1) + 1
			key := fmt.Sprintf("%s %s %d", station, table, nth)
			if taken[key] {
				continue
			}
			at := l.from.Add(time.Duration(4*nth) * recordInterval)
			readings := l.history(station, table, at.Add(-recordInterval), at)
			if len(readings) < 2 {
				continue // in a hole
			}
			p := planter(random, slot{before: readings[0], reading: readings[1]})
			p.station, p.table = station, table
			moment := fmt.Sprintf("%s %s %s", station, table, p.at)
			if p.values != nil && taken[moment] {
				continue
			}
			taken[key], taken[moment] = true, true
			require.NoError(l, l.Replace(station, table, at, p.frame))
			l.planted = append(l.planted, p)
			return
		}
	}
	malformed := ldmptest.Malformed()
	for _, name := range slices.Sorted(maps.Keys(malformed)) {
		frame := malformed[name]
		plant(func(*rand.Rand, slot) planted { return badRecord(bytes.Clone(frame)) })
	}
	for _, name := range slices.Sorted(maps.Keys(planters)) {
		for range times {
			plant(planters[name])
		}
	}
}

// history lists readings at a time that has not come yet.
func (l *loggers) history(station, table string, from, to time.Time) []ldmptest.Reading {
	l.Helper()
	now := l.now.Swap(&l.to)
	defer l.now.Store(now)
	readings, err := l.Readings(station, table, from, to)
	require.NoError(l, err)
	return readings
}
