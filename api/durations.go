package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/job"
)

// durationsJSON is a codec that reads durations in ISO 8601, PT1M, beside those of protobuf,
// 60s. It writes those of protobuf.
type durationsJSON struct{ *connectproto.JSONCodec }

// UnmarshalRead implements connect.Codec.
func (c durationsJSON) UnmarshalRead(ctx context.Context, from io.Reader, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return c.JSONCodec.UnmarshalRead(ctx, from, message)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	d := durations{Decoder: json.NewDecoder(bytes.NewReader(text)), text: text}
	// What is no JSON, or nested too deep, is for the codec to refuse.
	_ = d.value(content{message: m.ProtoReflect().Descriptor()}, "", MaxDepth)
	if d.wrong != nil {
		return d.wrong
	}
	return c.JSONCodec.UnmarshalRead(ctx, bytes.NewReader(append(d.read, text[d.copied:]...)), message)
}

// errLeft ends the reading of a message whose rest does not matter.
var errLeft = errors.New("the rest is not read")

// durations reads a message, and writes its durations as protobuf does. All else stays as it
// is.
type durations struct {
	*json.Decoder
	text, read []byte
	copied     int   // so many bytes of text are in read
	wrong      error // of the first text that is no duration
}

// content is what a value stands for. Its message is nil if no durations are in it.
type content struct {
	message protoreflect.MessageDescriptor
	entries bool // It is a map to such messages.
}

// of is what a field stands for.
func (c content) of(name string) content {
	switch {
	case c.message == nil:
		return content{}
	case c.entries:
		return content{message: c.message}
	case c.message.FullName().Parent() == "google.protobuf":
		return content{} // Its JSON has a form of its own.
	}
	field := c.message.Fields().ByJSONName(name)
	if field == nil {
		field = c.message.Fields().ByTextName(name)
	}
	switch {
	case field == nil:
		return content{}
	case field.IsMap():
		return content{field.MapValue().Message(), true}
	}
	return content{message: field.Message()}
}

// value reads a value at a path. A list stands for what its elements do.
func (d *durations) value(c content, path string, depth int) error {
	before := d.InputOffset()
	token, err := d.Token()
	if err != nil {
		return err
	}
	if depth == 0 || d.wrong != nil {
		return errLeft
	}
	switch token := token.(type) {
	case string:
		if c.message != nil && !c.entries && c.message.FullName() == "google.protobuf.Duration" {
			d.duration(token, path, before)
		}
	case json.Delim:
		for d.More() {
			inner, at := c, path
			if token == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				inner, at = c.of(fmt.Sprint(name)), strings.TrimPrefix(path+"."+fmt.Sprint(name), ".")
			}
			if err := d.value(inner, at, depth-1); err != nil {
				return err
			}
		}
		_, err = d.Token() // The end.
	}
	return err
}

// protoDuration is the form that protobuf has for durations.
var protoDuration = regexp.MustCompile(`^[-+]?[0-9.]+s$`)

// duration writes a duration that was read after some bytes.
func (d *durations) duration(text, path string, after int64) {
	if protoDuration.MatchString(text) {
		return
	}
	parsed, err := job.ParseDuration(text)
	if err != nil || !strings.HasPrefix(text, "P") {
		d.wrong = fmt.Errorf("%s: %.60q is not a duration: write it as PT1M or 60s", path, text)
		return
	}
	written, err := protojson.Marshal(durationpb.New(parsed.Std()))
	if err != nil {
		d.wrong = fmt.Errorf("%s: %w", path, err)
		return
	}
	begin := int(after) + bytes.IndexByte(d.text[after:], '"')
	d.read = append(append(d.read, d.text[d.copied:begin]...), written...)
	d.copied = int(d.InputOffset())
}
