package integration

import (
	"slices"
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

// TestOwnersOfMeasurements: what looks like the name of another station is its own.
func TestOwnersOfMeasurements(t *testing.T) {
	t.Parallel()
	several := ownersOf(stations("ridge", "ridge-2", "ridge_source_x", "a-b", "a_b"))
	alone := ownersOf(stations("ridge"))
	for measurement, want := range map[string][2]string{ // slug and table
		"station_ridge_source_tenmin":                 {"ridge", "tenmin"},
		"station_Ridge_source_TenMin":                 {"ridge", "TenMin"},
		"station_ridge_2_source_tenmin":               {"ridge-2", "tenmin"},
		"station_ridge_imported_notes":                {"ridge", "imported_notes"},
		"station_ridge_source_imported_notes":         {"ridge", "imported_notes"},
		"station_ridge_source_x_source_y":             {"ridge_source_x", "y"},
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
		station, table := several.table(measurement)
		require.Equal(t, want[0], station.GetSlug(), measurement)
		if station != nil {
			require.Equal(t, want[1], table, measurement)
		}
	}
	for measurement, want := range map[string]string{
		"source_tenmin": "tenmin", "tenmin": "tenmin", "imported_notes": "imported_notes", "station_ridge_source_tenmin": "tenmin",
		"station_meadow_source_tenmin": "",
	} {
		station, table := alone.table(measurement)
		require.Equal(t, want != "", station != nil, measurement)
		require.Equal(t, want, table, measurement)
	}
}

// FuzzOwners gives measurements any name: what the jobs that prepare points name theirs
// is found again, and no name has a table without a name.
func FuzzOwners(f *testing.F) {
	f.Add("ridge", "tenmin", "station_ridge_source_tenmin")
	f.Add("a_source_b", "imported_x", "station_a_imported_b")
	f.Add("", "", "station__source_")
	f.Fuzz(func(t *testing.T, slug, table, measurement string) {
		o := ownersOf(stations(slug, "other"))
		if station, name := o.table(measurement); station != nil {
			require.NotEmpty(t, name)
			require.True(t, strings.HasSuffix(measurement, name))
		}
		safe := strings.ToLower(pipeline.SafeName(table))
		if safe == "" || strings.Contains(safe, "_source_") || strings.Contains(safe, "_imported_") || strings.HasPrefix(safe, "source_") {
			return // Of several readings the one with the longest slug counts.
		}
		station, name := o.table("station_" + strings.ToLower(pipeline.SafeName(slug)) + "_source_" + safe)
		require.Equal(t, slug, station.GetSlug())
		require.Equal(t, safe, name)
	})
}

func TestTablesOfSeveralMirrors(t *testing.T) {
	t.Parallel()
	float, text := influx.FieldFloat, influx.FieldString
	one := source{"default", influx.Measurements{"m": {"a": {float}, "b": {text, float}, "c": {float}}}}
	for name, c := range map[string]struct {
		other    source
		types    []string
		disputes []string
	}{
		"the same": {
			source{"west", influx.Measurements{"m": {"a": {float}, "b": {float}, "c": {float}}}},
			[]string{"a float", "b float", "c float"},
			[]string{"field b is float and string on mirror default, float on mirror west"},
		},
		"a type": {
			source{"west", influx.Measurements{"m": {"a": {influx.FieldBoolean}, "b": {text}, "c": {float}}}},
			[]string{"a float", "b float", "c float"},
			[]string{"field a is float on mirror default, boolean on mirror west", "field b is float and string on mirror default, string on mirror west"},
		},
		"fields": {
			source{"west", influx.Measurements{"m": {"d": {influx.FieldInteger}}}},
			[]string{"a float", "b float", "c float", "d integer"},
			[]string{
				"field a is float on mirror default, missing on mirror west", "field b is float and string on mirror default, missing on mirror west",
				"field c is float on mirror default, missing on mirror west", "field d is missing on mirror default, integer on mirror west",
			},
		},
		"the table": {
			source{"west", influx.Measurements{}},
			[]string{"a float", "b float", "c float"},
			[]string{"mirror west does not have it", "field b is float and string on mirror default"},
		},
		"the database": {
			source{"west", nil},
			[]string{"a float", "b float", "c float"},
			[]string{"mirror west does not have it", "field b is float and string on mirror default"},
		},
	} {
		fields, disputes := tableOf("m", []source{one, c.other})
		var types []string
		for _, f := range fields {
			types = append(types, f.GetName()+" "+typeName(f.GetType()))
		}
		require.Equal(t, c.types, types, name)
		require.Equal(t, c.disputes, disputes, name)
	}
	_, disputes := tableOf("m", []source{{"default", influx.Measurements{"m": {"a": {float}}}}, {"west", influx.Measurements{"m": {"a": {float}}}}})
	require.Empty(t, disputes)
}

func TestDifferencesOfTables(t *testing.T) {
	t.Parallel()
	table := func(database string, fields ...string) *platformv1.TableInfo {
		info := &platformv1.TableInfo{Database: database, Measurement: "m"}
		for _, f := range fields {
			name, typeName, _ := strings.Cut(f, " ")
			info.Fields = append(info.Fields, &platformv1.TableField{Name: name, Type: fieldTypes[influx.FieldType(typeName)]})
		}
		return info
	}
	was := table("d", "a float", "b string", "c float")
	require.Nil(t, compareTables(was, table("d", "a float", "b string", "c float")))
	require.Nil(t, compareTables(was, table("d", "c float", "b string", "a float")), "in another order")
	require.Equal(t, "types changed: b from string to float; fields gone: c; fields added: d; it is in another database or measurement",
		compareTables(was, table("e", "a float", "b float", "d boolean")).text())
}

// TestSourcesOfAnyOrder: the mirrors' order does not change what the platform is told.
func TestSourcesOfAnyOrder(t *testing.T) {
	t.Parallel()
	sources := []source{
		{"a", influx.Measurements{"m": {"x": {influx.FieldString}, "y": {influx.FieldFloat}}}},
		{"b", influx.Measurements{"m": {"x": {influx.FieldInteger}}}},
	}
	fields, _ := tableOf("m", sources)
	slices.Reverse(sources)
	again, _ := tableOf("m", sources)
	require.Nil(t, compareTables(&platformv1.TableInfo{Fields: fields}, &platformv1.TableInfo{Fields: again}))
}
