package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectgzip"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds of what becomes of a request message. A few bytes can stand for a message of some
// hundred, and a few compressed ones for a thousand of them.
const (
	// MaxUnpacked is what a compressed message may unpack to, in bytes.
	MaxUnpacked = 512 << 10
	// fewValues are those that a message of any size may have, manyValues those of the
	// largest: messages, entries of maps, elements of lists. In between each needs
	// bytesOfValue.
	fewValues, manyValues, bytesOfValue = 50_000, 1_000_000, 6
	// MaxDepth is how deep messages may be nested. A list within a list takes two.
	MaxDepth = 200
)

// boundedGzip is gzip that unpacks so much and no more.
type boundedGzip struct{ *connectgzip.Compressor }

// Decompress implements connect.Compressor.
func (c boundedGzip) Decompress(from io.Reader) (io.ReadCloser, error) {
	unpacked, err := c.Compressor.Decompress(from)
	if err != nil {
		return nil, err
	}
	return &boundedReader{unpacked, MaxUnpacked}, nil
}

type boundedReader struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.left -= n; r.left < 0 {
		return n, newError(connect.CodeResourceExhausted, tooLarge, "a compressed request may unpack to %d bytes: send it as it is", MaxUnpacked)
	}
	return n, err
}

// boundedBinary and boundedJSON are codecs that count the values of a message before they
// make anything of them.
type (
	boundedBinary struct{ *connectproto.BinaryCodec }
	boundedJSON   struct{ *connectproto.JSONCodec }
)

func newBinaryCodec() boundedBinary {
	codec := connectproto.NewBinaryCodec()
	codec.UnmarshalOptions.RecursionLimit = MaxDepth
	return boundedBinary{codec}
}

func newJSONCodec() boundedJSON {
	codec := connectproto.NewJSONCodec()
	// People write JSON: a field that there is not is an error, and not passed over.
	codec.UnmarshalOptions.DiscardUnknown = false
	codec.UnmarshalOptions.RecursionLimit = MaxDepth
	return boundedJSON{codec}
}

// UnmarshalRead implements connect.Codec.
func (c boundedBinary) UnmarshalRead(ctx context.Context, from io.Reader, message any) error {
	return countFirst(ctx, from, message, c.BinaryCodec, func(text []byte, left int) int {
		if m, ok := message.(proto.Message); ok {
			return countBinary(m.ProtoReflect().Descriptor(), text, left, MaxDepth)
		}
		return left
	})
}

// UnmarshalRead implements connect.Codec.
func (c boundedJSON) UnmarshalRead(ctx context.Context, from io.Reader, message any) error {
	err := countFirst(ctx, from, message, durationsJSON(c), countJSON)
	if err == nil {
		return nil
	}
	// The reader puts a space that no keyboard has into some of its texts.
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	return &readError{text, err}
}

// readError is the error of a message that cannot be read, with its text for people.
type readError struct {
	text string
	error
}

// Error implements error.
func (e *readError) Error() string { return e.text }

// Unwrap gives the error with its own text.
func (e *readError) Unwrap() error { return e.error }

// countFirst reads a message unless it has too many values. Count takes those of a text off
// what is left, and may end once that is negative.
func countFirst(ctx context.Context, from io.Reader, message any, codec connect.Codec, count func(text []byte, left int) int) error {
	var whole bytes.Buffer
	if buffered, ok := from.(*bytes.Buffer); ok {
		whole = *buffered // Its bytes are read twice, and copied once.
	} else if _, err := whole.ReadFrom(from); err != nil {
		return err
	}
	most := min(fewValues+whole.Len()/bytesOfValue, manyValues)
	if count(whole.Bytes(), most) < 0 {
		return fmt.Errorf("its %d bytes have more than %d values", whole.Len(), most)
	}
	return codec.UnmarshalRead(ctx, &whole, message)
}

// countJSON counts values by what comes before them.
func countJSON(text []byte, left int) int {
	quoted := false
	for i := 0; i < len(text) && left >= 0; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '[' || c == ','):
			left--
		}
	}
	return left
}

// countBinary counts the values of a message. What is not well-formed is for the codec to
// refuse.
func countBinary(of protoreflect.MessageDescriptor, text []byte, left, depth int) int {
	for len(text) > 0 && left >= 0 && depth > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return left
		}
		text = text[n:]
		if n = protowire.ConsumeFieldValue(number, kind, text); n < 0 {
			return left
		}
		field := of.Fields().ByNumber(number)
		switch {
		case field == nil:
		case field.Message() != nil && kind == protowire.BytesType:
			within, _ := protowire.ConsumeBytes(text)
			left = countBinary(field.Message(), within, left-1, depth-1)
		case field.IsList():
			left--
		}
		text = text[n:]
	}
	return left
}
