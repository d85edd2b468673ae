package hobolinktest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"time"
)

// Row is an item of the data list as it stands in an answer. Value is anything
// that JSON can hold, so that a test can serve what the vendor should not.
type Row struct {
	Logger          string `json:"logger_sn"`
	Sensor          string `json:"sensor_sn"`
	Timestamp       string `json:"timestamp"`
	DataType        string `json:"data_type"`
	DataTypeID      string `json:"data_type_id"`
	Value           any    `json:"value"`
	Unit            string `json:"unit"`
	MeasurementType string `json:"sensor_measurement_type"`
}

// timestampLayout is the vendor's form of a time in an answer.
const timestampLayout = "2006-01-02 15:04:05Z"

// Row is the wire form of an observation.
func (o Observation) Row() Row {
	return Row{
		Logger: o.Logger, Sensor: o.Sensor, Timestamp: o.Time.UTC().Format(timestampLayout),
		DataType: o.DataType, DataTypeID: dataTypeIDs[o.DataType], Value: o.Value,
		Unit: o.Unit, MeasurementType: o.MeasurementType,
	}
}

type extraRow struct {
	at  time.Time
	row Row
}

// AddRow serves a row verbatim in every answer for its logger whose time frame
// holds at, after the measured observations. It takes no regard of Now.
func (h *Handler) AddRow(at time.Time, row Row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows = append(h.rows, extraRow{at: at, row: row})
}

// writeData streams the answer to a request. The flag max_results comes before
// the data, so the points are counted before they are written.
func (h *Handler) writeData(w http.ResponseWriter, request *Request) {
	var rows []Row
	for _, logger := range request.Loggers {
		for observation := range h.observations(logger, request.Start, request.End) {
			if len(rows) == h.options.MaxResults {
				request.Truncated = true
				break
			}
			rows = append(rows, observation.Row())
		}
		rows = append(rows, h.extraRows(logger, request.Start, request.End)...)
	}
	if len(rows) > h.options.MaxResults {
		rows, request.Truncated = rows[:h.options.MaxResults], true
	}
	request.Status, request.Points = http.StatusOK, len(rows)

	message := "OK: Found: " + plural(len(rows))
	if request.Truncated {
		message += ", the maximum: narrow the time frame for the rest"
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriter(w)
	head, _ := json.Marshal(message) // a string always encodes
	_, _ = out.WriteString(`{"message":` + string(head) + `,"max_results":`)
	if request.Truncated {
		_, _ = out.WriteString("true")
	} else {
		_, _ = out.WriteString("false")
	}
	_, _ = out.WriteString(`,"data":[`)
	for i, row := range rows {
		text, err := json.Marshal(row)
		if err != nil {
			// Only a row that a test added can fail; the broken answer shows it.
			return
		}
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(text)
	}
	_, _ = out.WriteString("]}\n")
	_ = out.Flush() // the client is gone, and there is nobody to tell
}

func (h *Handler) extraRows(logger string, from, to time.Time) []Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rows []Row
	for _, extra := range h.rows {
		if extra.row.Logger == logger && !extra.at.Before(from) && !extra.at.After(to) {
			rows = append(rows, extra.row)
		}
	}
	return rows
}
