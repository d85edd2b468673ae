package extract

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// destination says where a point is stored, and by which flow it gets there.
type destination struct {
	operation   pipeline.Operation
	location    string
	database    string
	measurement string
}

// message makes the prepared message of a point. Its id is a digest of subject
// and point; see [preparedOf].
func (d destination) message(context pipeline.Context, at time.Time, fields map[string]any) (pipeline.Outgoing, error) {
	payload := pipeline.Points{
		Options: pipeline.PointOptions{Database: d.database, Precision: "ms"},
		Points:  []pipeline.Point{{Measurement: d.measurement, Fields: fields, Time: pipeline.Time{Time: at}}},
	}
	unique, err := json.Marshal(payload)
	if err != nil {
		return pipeline.Outgoing{}, fmt.Errorf("encode a point of station %s, table %s: %w", context.Station, context.Table, err)
	}
	context.Location = d.location
	subject := pipeline.PrepSubject(d.operation, d.location)
	return outgoing(subject, pipeline.Message[pipeline.Points]{Context: context, Payload: payload}, []string{subject, string(unique)})
}

// preparedOf is a prepared message with the id that it has as that of a raw message:
// whoever prepares the same raw message in the same way makes a repeat, and the
// same point of another raw message is none.
func preparedOf(prepared pipeline.Outgoing, raw string) pipeline.Outgoing {
	prepared.ID = pipeline.ID(prepared.ID, raw)
	return prepared
}

func outgoing[P any](subject string, message pipeline.Message[P], unique []string) (pipeline.Outgoing, error) {
	body, err := message.Encode()
	if err != nil {
		return pipeline.Outgoing{}, err
	}
	return pipeline.Outgoing{Subject: subject, ID: pipeline.ID(unique...), Body: body}, nil
}
