package load_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestAConflictingFieldCostsAField: Release 2 has stored numbers in two fields that hold
// texts now, for as long as one shard lasts; a point of another shard keeps its text.
func TestAConflictingFieldCostsAField(t *testing.T) {
	t.Parallel()
	const n = 2000
	b := newBench(t, "conflicts", stacktest.Start(t))
	b.spec.OnConflict = load.OnConflictDropField
	writer, err := influx.NewWriter(b.influx)
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), b.name))
	_, err = influx.Query(t.Context(), b.influx, b.name, `ALTER RETENTION POLICY "autogen" ON "conflicts" SHARD DURATION 1h`)
	require.NoError(t, err)
	b.publish(t, b.message(n, `{"v":0,"AT TMx":2018,"b":1}`)) // of Release 2
	b.drain(t)
	b.proxy.writes.Store(0)

	const hour = 3_600_000
	var bodies []string
	for i := range n {
		switch {
		case i == 7: // nothing else is in it
			bodies = append(bodies, b.message(i, `{"b":true}`))
		case i%100 == 8: // of the next shard, in which these fields are new
			bodies = append(bodies, b.message(2*hour+i, fmt.Sprintf(`{"v":%d,"AT TMx":"text","b":true}`, i)))
		case i%2 == 0:
			bodies = append(bodies, b.message(i, fmt.Sprintf(`{"v":%d,"AT TMx":"2018-12-24T07:00:00, \"x\" =","b":false}`, i)))
		default:
			bodies = append(bodies, b.message(i, fmt.Sprintf(`{"v":%d,"w":"text"}`, i)))
		}
	}
	b.publish(t, bodies...)
	counts := b.oneBatch(t, n)
	for name, more := range b.drain(t) {
		counts[name] += more
	}
	require.EqualValues(t, n, counts["messages"])
	require.EqualValues(t, n-1, counts["points"])
	require.EqualValues(t, 2*(n/2-n/100), counts["dropped_fields"])
	require.EqualValues(t, 1, counts["quarantined"], "the point without another field")
	t.Logf("%d writes", b.proxy.writes.Load())
	require.LessOrEqual(t, b.proxy.writes.Load(), int64(120))

	require.EqualValues(t, n, b.count(t, "v"))
	for field, want := range map[string]int{`"AT TMx"::float`: 1, `"b"::float`: 1, `"w"`: n/2 - 1, `"AT TMx"::string`: n / 100, `"b"::boolean`: n / 100} {
		rows, err := influx.Query(t.Context(), b.influx, b.name, "SELECT "+field+` FROM "m"`)
		require.NoError(t, err)
		require.Len(t, rows[0].Values, want, field)
	}
	quarantine := b.quarantine(t)
	require.Len(t, quarantine, 1)
	require.JSONEq(t, bodies[7], string(quarantine[0].Data()))
}

// TestRulesForFields: what Release 2 stored as numbers stays a number, and what is not
// wanted is not stored. Tags may be numbers, as in its prepared messages.
func TestRulesForFields(t *testing.T) {
	t.Parallel()
	b := newBench(t, "fieldrules", stacktest.Start(t))
	b.spec.NumberFields, b.spec.DropFields = []string{"_TMx$"}, []string{"_flag$", "^scratch$"}
	b.publish(t, b.message(0, `{"v":1,"AT_TMx":2018}`)) // of Release 2
	b.publish(t,
		b.message(1, `{"v":2,"AT_TMx":"2019-01-01T00:00:00","qc_flag":"x","scratch":[]}`),
		b.message(2, `{"qc_flag":1}`),
		strings.Replace(b.message(3, `{"v":4}`), `"fields"`, `"tags":{"DatastreamID":57,"raw":true,"none":null},"fields"`, 1),
		strings.Replace(b.message(4, `{"v":5}`), `"fields"`, `"tags":{"DatastreamID":[57]},"fields"`, 1),
	)
	counts := b.drain(t)
	require.EqualValues(t, 5, counts["messages"])
	require.EqualValues(t, 3, counts["points"])
	require.EqualValues(t, 3, counts["dropped_fields"])
	require.EqualValues(t, 1, counts["quarantined"])
	require.Contains(t, b.quarantine(t)[0].Headers().Get("Dendra-Reason"), `tag "DatastreamID" is neither a string nor a number: [57]`)
	rows, err := influx.Query(t.Context(), b.influx, b.name, `SELECT "AT_TMx" FROM "m"`)
	require.NoError(t, err)
	require.Len(t, rows[0].Values, 2)
	require.Equal(t, json.Number("2019"), rows[0].Values[1][1])
	rows, err = influx.Query(t.Context(), b.influx, b.name, `SELECT v FROM "m" WHERE "DatastreamID" = '57' AND "raw" = 'true'`)
	require.NoError(t, err)
	require.Len(t, rows[0].Values, 1)
}
