package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

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
