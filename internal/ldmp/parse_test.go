package ldmp_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
)

func TestParseRecord(t *testing.T) {
	t.Parallel()
	record, err := ldmp.Parse([]byte(`<record station="stn_a" table="TenMin" record-no="17829" time="2018-12-24T07:00:00">` +
		`<field name="AT_C_Avg" type="xsd:float" units="°C" process="Avg">6.643</field>` +
		`<field units='m&#178;'/><field name="Msg" type="xsd:string">a &lt; b
</field></record>`))
	require.NoError(t, err)
	require.Equal(t, ldmp.Record{
		Number: 17829, Station: "stn_a", Table: "TenMin", Time: "2018-12-24T07:00:00",
		Fields: []ldmp.Field{
			{Name: "AT_C_Avg", Process: "Avg", Type: "xsd:float", Units: "°C", Value: "6.643"},
			{Name: "col_2", Units: "m²"},
			{Name: "Msg", Type: "xsd:string", Value: "a < b\n"},
		},
	}, record)
	clock, err := record.Clock()
	require.NoError(t, err)
	require.Equal(t, time.Date(2018, 12, 24, 7, 0, 0, 0, time.UTC), clock)
	require.Equal(t, time.Date(2018, 12, 24, 15, 0, 0, 0, time.UTC), ldmp.At(clock, -8*time.Hour))
	require.Equal(t, clock, ldmp.ClockAt(ldmp.At(clock, -8*time.Hour), -8*time.Hour))
}

func TestParseFindsTheRecordAnywhere(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string]string{
		"prolog":  `<?xml version="1.0" encoding="UTF-8"?><record record-no="1" station="s" table="t" time="2026-01-01T00:00:00.25"/>`,
		"within":  `<lgr:data xmlns:lgr="x"><head><field name="no"/></head><lgr:record record-no="1" station="s" table="t" time="2026-01-01T00:00:00.25" x:table="u"></lgr:record></lgr:data>`,
		"latin 1": "<?xml version='1.0' encoding='ISO-8859-1'?><record record-no='1' station='s' table='t' time='2026-01-01T00:00:00.25'><!-- \xb0C --></record>",
		"spaces":  "\r\n <record time='2026-01-01T00:00:00.25' table='t' station='s' record-no='1'> </record> \n",
	} {
		record, err := ldmp.Parse([]byte(frame))
		require.NoError(t, err, name)
		require.Equal(t, ldmp.Record{Number: 1, Station: "s", Table: "t", Time: "2026-01-01T00:00:00.25"}, record, name)
	}
	record, err := ldmp.Parse([]byte("<record record-no='1' station='s' table='t' time='2026-01-01T00:00:00'><field name='a' units='\xb0C'>1</field></record>"))
	require.NoError(t, err)
	require.Equal(t, "°C", record.Fields[0].Units)
}

func TestMalformedFramesAreErrors(t *testing.T) {
	t.Parallel()
	for name, frame := range ldmptest.Malformed() {
		if name == "too long" { // that is seen by who reads the frame
			continue
		}
		_, err := ldmp.Parse(frame)
		var malformed *ldmp.MalformedError
		require.ErrorAs(t, err, &malformed, name)
		require.Equal(t, frame, malformed.Raw, name)
		require.NotEmpty(t, malformed.Reason, name)
		require.NotContains(t, malformed.Reason, "\n", name)
	}
	_, err := ldmp.Parse([]byte(`<record station="stn_a" table="TenMin" record-no="x" time=""/>`))
	var malformed *ldmp.MalformedError
	require.ErrorAs(t, err, &malformed)
	require.Equal(t, []string{"stn_a", "TenMin"}, []string{malformed.Station, malformed.Table})
	require.Equal(t, `record-no "x" is not a number of a record`, malformed.Reason)
}

func FuzzParse(f *testing.F) {
	for _, frame := range ldmptest.Malformed() {
		if len(frame) < 1000 {
			f.Add(frame)
		}
	}
	readings, err := ldmptest.New(ldmptest.Options{}).Readings("angelo", "TenSec", ldmptest.Since, ldmptest.Since.Add(time.Minute))
	require.NoError(f, err)
	for _, r := range readings {
		f.Add(ldmptest.Encode(r.Record()))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if quick, ok := ldmp.Scan(frame); ok {
			decoded, err := ldmp.Decode(frame)
			require.NoError(t, err)
			require.Equal(t, decoded, quick, "what is read the quick way is read the other way too")
		}
		record, err := ldmp.Parse(frame)
		if err != nil {
			var malformed *ldmp.MalformedError
			require.ErrorAs(t, err, &malformed)
			require.True(t, bytes.Equal(frame, malformed.Raw))
			return
		}
		// What was understood can be said again, and means the same.
		again, err := ldmp.Parse(ldmptest.Encode(record))
		require.NoError(t, err)
		require.Equal(t, record, again)
	})
}

func TestPlainFramesAreScanned(t *testing.T) {
	t.Parallel()
	readings, err := ldmptest.New(ldmptest.Options{}).Readings("angelo", "OneMin", ldmptest.Since, ldmptest.Since.Add(3*time.Hour))
	require.NoError(t, err)
	scanned := 0
	for _, r := range readings {
		frame := ldmptest.Encode(r.Record())
		decoded, err := ldmp.Decode(frame)
		require.NoError(t, err)
		require.Equal(t, r.Record(), decoded)
		if record, ok := ldmp.Scan(frame); ok {
			require.Equal(t, decoded, record)
			scanned++
		}
	}
	require.Greater(t, scanned, len(readings)*8/10, "only those with quotes in a text are not")
}
