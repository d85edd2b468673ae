package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// DecodeSpec decodes a spec strictly into a pointer to a struct, gives fields that
// are zero the default of their tag, and calls the Validate method if there is
// one. No text means an empty object. Unknown keys, values of another type, and
// anything but one JSON object are errors. Missing keys and the bounds of values
// are checked before, by the schema of the spec.
func DecodeSpec(text json.RawMessage, into any) error {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	if !isObject(text) {
		return fmt.Errorf("%s is not a JSON object", clip(text))
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return decodeError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the JSON object")
	}
	if err := setDefaults(reflect.ValueOf(into)); err != nil {
		return err
	}
	if v, ok := into.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// isObject reports whether a JSON text is an object, by its first character.
func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}

// decodeError says in the words of a spec what encoding/json says in Go's.
func decodeError(err error) error {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("key %q: a JSON %s does not fit, it takes %s", mismatch.Field, mismatch.Value, mismatch.Type)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("not JSON: %w", err)
	}
	// encoding/json has no type for this one.
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown key %s", key)
	}
	return err
}
