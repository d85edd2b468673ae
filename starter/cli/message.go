package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
)

// emitMessage writes a message of the Job API as JSON, or calls write for people.
func (i *invocation) emitMessage(message proto.Message, write func(w io.Writer) error) error {
	if i.format == formatTable {
		return write(i.Stdout)
	}
	text, err := messageJSON(message)
	if err != nil {
		return err
	}
	return i.writeJSON(text)
}

// messageJSON is a message in the JSON of the Job API. Its white space is of no meaning, and
// differs from one build to the next.
func messageJSON(message proto.Message) (json.RawMessage, error) {
	return protojson.Marshal(message)
}

// writeJSON writes a JSON text with the same white space each time.
func (i *invocation) writeJSON(text json.RawMessage) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := i.Stdout.Write(indented.Bytes())
	return err
}

// stamp is a time of a message, zero if it has none.
func stamp(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// stampOf is a time for a message, nil for the zero time.
func stampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// missing says what is not there, of an error NOT_FOUND of the Job API: queue or queue_item.
func missing(err error) string {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok || failed.Code() != connect.CodeNotFound {
		return ""
	}
	_, metadata := api.InfoOf(err)
	return metadata["resource"]
}

// said is the text of an error of the Job API for people: without its code.
func said(err error) string {
	if failed, ok := errors.AsType[*connect.Error](err); ok {
		return failed.Message()
	}
	return err.Error()
}
