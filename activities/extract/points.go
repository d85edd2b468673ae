package extract

import (
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// Destination says where a point is stored, and by which flow it gets there.
type Destination struct {
	Operation   pipeline.Operation
	Location    string
	Database    string
	Measurement string
}

// Point is a point of a record. Its time is stored with milliseconds. Fields are float64,
// string or bool.
type Point struct {
	Destination

	Time   time.Time
	Fields map[string]any
}

// message makes the prepared message of a point. Its id is a digest of subject
// and point; see [preparedOf].
func (p Point) message(context pipeline.Context) (pipeline.Outgoing, error) {
	payload := pipeline.Points{
		Options: pipeline.PointOptions{Database: p.Database, Precision: "ms"},
		Points:  []pipeline.Point{{Measurement: p.Measurement, Fields: p.Fields, Time: pipeline.Time{Time: p.Time}}},
	}
	encoded, err := pipeline.Marshal(payload)
	if err != nil {
		return pipeline.Outgoing{}, fmt.Errorf("encode a point of station %s, table %s: %w", context.Station, context.Table, err)
	}
	context.Location = p.Location
	subject := pipeline.PrepSubject(p.Operation, p.Location)
	return outgoing(subject, context, encoded, subject, string(encoded))
}

// preparedOf is a prepared message with the id that it has as that of a raw message:
// whoever prepares the same raw message in the same way makes a repeat, and the
// same point of another raw message is none.
func preparedOf(prepared pipeline.Outgoing, raw string) pipeline.Outgoing {
	prepared.ID = pipeline.ID(prepared.ID, raw)
	return prepared
}

func outgoing(subject string, context pipeline.Context, payload []byte, unique ...string) (pipeline.Outgoing, error) {
	body, err := pipeline.Envelope(context, payload)
	if err != nil {
		return pipeline.Outgoing{}, err
	}
	return pipeline.Outgoing{Subject: subject, ID: pipeline.ID(unique...), Body: body}, nil
}
