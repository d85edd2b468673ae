package influx_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func stations(slugs ...string) []*platformv1.Station {
	var list []*platformv1.Station
	for _, slug := range slugs {
		list = append(list, &platformv1.Station{Id: "id of " + slug, Slug: slug})
	}
	return list
}

// TestOwnersOfMeasurements: what may be that of several stations is nobody's.
func TestOwnersOfMeasurements(t *testing.T) {
	t.Parallel()
	several := influx.OwnersOf("d", stations("ridge", "ridge-2", "ridge_source_x", "a-b", "a_b"))
	own := stations("ridge")
	own[0].Database = "d"
	alone := influx.OwnersOf("d", own)
	station, _ := influx.OwnersOf("common1", own).Table("source_tenmin")
	require.Nil(t, station, "organizations may share a database that no record names")
	for measurement, want := range map[string][2]string{ // slug and table
		"station_ridge_source_tenmin":                 {"ridge", "tenmin"},
		"station_Ridge_source_TenMin":                 {"ridge", "TenMin"},
		"station_ridge_2_source_tenmin":               {"ridge-2", "tenmin"},
		"station_ridge_imported_notes":                {"ridge", "imported_notes"},
		"station_ridge_source_imported_notes":         {"ridge", "imported_notes"},
		"station_ridge_source_x_source_y":             {}, // table y of one, or x_source_y of another
		"station_ridge_source_z_source_y":             {"ridge", "z_source_y"},
		"station_ridge_source_":                       {},
		"station_ridge_imported_":                     {},
		"station_ridge":                               {},
		"station_ridge_3_source_tenmin":               {},
		"station_a_b_source_tenmin":                   {}, // of two stations
		"source_tenmin":                               {},
		"station_":                                    {},
		"":                                            {},
		"station__source_tenmin":                      {},
		strings.Repeat("station_ridge_source_", 1000): {"ridge", strings.Repeat("station_ridge_source_", 1000)[len("station_ridge_source_"):]},
	} {
		station, table := several.Table(measurement)
		require.Equal(t, want[0], station.GetSlug(), measurement)
		if station != nil {
			require.Equal(t, want[1], table, measurement)
		}
	}
	for measurement, want := range map[string]string{
		"source_tenmin": "tenmin", "imported_notes": "imported_notes", "station_ridge_source_tenmin": "tenmin",
		"station_meadow_source_tenmin": "", "tenmin": "", "source_": "", "": "",
	} {
		station, table := alone.Table(measurement)
		require.Equal(t, want != "", station != nil, measurement)
		require.Equal(t, want, table, measurement)
	}
}

// TestTheOnlyStationOfADatabase has what names no station, unless something else writes
// into the database.
func TestTheOnlyStationOfADatabase(t *testing.T) {
	t.Parallel()
	own := stations("ridge", "meadow")
	own[0].Database, own[1].Database = "d", "d"
	for _, c := range []struct {
		stations int
		among    []string
		has      bool
	}{
		{1, []string{"source_tenmin", "imported_notes", "station_ridge_source_hour"}, true},
		{1, []string{"source_tenmin", "cpu"}, false},
		{1, []string{"source_tenmin", "station_meadow_source_tenmin"}, false},
		{2, []string{"source_tenmin"}, false},
	} {
		station, _ := influx.OwnersOf("d", own[:c.stations]).Among(c.among).Table("source_tenmin")
		require.Equal(t, c.has, station != nil, c)
	}
}

// FuzzOwners gives measurements any name: what the jobs that prepare points name theirs
// is found again, and no name has a table without a name.
func FuzzOwners(f *testing.F) {
	f.Add("ridge", "tenmin", "station_ridge_source_tenmin")
	f.Add("a_source_b", "imported_x", "station_a_imported_b")
	f.Add("", "", "station__source_")
	f.Fuzz(func(t *testing.T, slug, table, measurement string) {
		o := influx.OwnersOf("d", stations(slug, "other"))
		if station, name := o.Table(measurement); station != nil {
			require.NotEmpty(t, name)
			require.True(t, strings.HasSuffix(measurement, name))
		}
		const longest = 64 // The platform takes no longer slug.
		safe, safeSlug := strings.ToLower(pipeline.SafeName(table)), strings.ToLower(pipeline.SafeName(slug))
		if len(safeSlug) > longest {
			return
		}
		if safe == "" || strings.Contains(safe, "_source_") || strings.Contains(safe, "_imported_") || strings.HasPrefix(safe, "source_") {
			return // It may be read in several ways.
		}
		station, name := o.Table("station_" + safeSlug + "_source_" + safe)
		require.Equal(t, slug, station.GetSlug())
		require.Equal(t, safe, name)
	})
}
