package ldmptest

import (
	"bytes"
	"encoding/xml"
	"strconv"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
)

const prolog = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// Encode writes a record as a frame, without its NUL. What XML cannot hold, such
// as control characters, becomes U+FFFD.
func Encode(record ldmp.Record) []byte {
	b := bytes.NewBuffer(make([]byte, 0, 256+112*len(record.Fields)))
	attribute := func(name, value string) {
		_, _ = b.WriteString(" " + name + `="`)
		_ = xml.EscapeText(b, []byte(value)) // a buffer takes everything
		_ = b.WriteByte('"')
	}
	_, _ = b.WriteString(prolog + "<record")
	attribute("record-no", strconv.FormatInt(record.Number, 10))
	attribute("station", record.Station)
	attribute("table", record.Table)
	attribute("time", record.Time)
	_, _ = b.WriteString(">")
	for _, f := range record.Fields {
		_, _ = b.WriteString("<field")
		attribute("name", f.Name)
		for _, optional := range [][2]string{{"type", f.Type}, {"units", f.Units}, {"process", f.Process}} {
			if optional[1] != "" {
				attribute(optional[0], optional[1])
			}
		}
		_, _ = b.WriteString(">")
		_ = xml.EscapeText(b, []byte(f.Value))
		_, _ = b.WriteString("</field>")
	}
	_, _ = b.WriteString("</record>")
	return b.Bytes()
}

// Malformed lists frames that are no records, by what is wrong with them.
func Malformed() map[string][]byte {
	record := func(attributes, inside string) []byte {
		return []byte(prolog + "<record " + attributes + ">" + inside + "</record>")
	}
	const good = `record-no="7" station="stn_0" table="OneMin" time="2026-03-04T05:06:00"`
	return map[string][]byte{
		"no XML":           []byte("server busy"),
		"no record":        []byte(`<status text="hello"/>`),
		"cut off":          []byte(`<record ` + good + `><field name="AT_C_Avg">1.`),
		"two records":      []byte("<records>" + string(record(good, "")[len(prolog):]) + string(record(good, "")[len(prolog):]) + "</records>"),
		"no station":       record(`record-no="7" table="OneMin" time="2026-03-04T05:06:00"`, ""),
		"no table":         record(`record-no="7" station="stn_0" time="2026-03-04T05:06:00"`, ""),
		"no record number": record(`station="stn_0" table="OneMin" time="2026-03-04T05:06:00"`, ""),
		"bad number":       record(`record-no="-7" station="stn_0" table="OneMin" time="2026-03-04T05:06:00"`, ""),
		"no time":          record(`record-no="7" station="stn_0" table="OneMin"`, ""),
		"bad time":         record(`record-no="7" station="stn_0" table="OneMin" time="yesterday"`, ""),
		"open field":       record(good, `<field name="a">1<b/></field>`),
		"bad entity":       record(good, `<field name="a">&nosuch;</field>`),
		"control":          record(good, "<field name=\"a\">\x01</field>"),
		"too long":         record(good, `<field name="a">`+string(bytes.Repeat([]byte{'x'}, ldmp.MaxFrame))+`</field>`),
	}
}
