package jobsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// object is a JSON object that keeps the order of its keys: of fields in a Go
// type, which is the order to read them in.
type object []member

type member struct {
	key   string
	value any
}

// parseObject reads a JSON object: objects in it as object, numbers as
// json.Number, all else as encoding/json does.
func parseObject(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := parseValue(decoder)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	parsed, ok := value.(object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return parsed, nil
}

func parseValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return parseMembers(decoder)
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			item, err := parseValue(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil
}

func parseMembers(decoder *json.Decoder) (any, error) {
	parsed := object{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := parseValue(decoder)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		parsed = append(parsed, member{name, value})
	}
	_, err := decoder.Token()
	return parsed, err
}

// MarshalJSON writes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	// Unlike json.Marshal, an encoder can leave < and > as they are.
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := encoder.Encode(m.key); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// get is the value of a key, or nil.
func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// object is the object under a key; nil if there is none.
func (o object) object(key string) object {
	value, _ := o.get(key).(object)
	return value
}

// text is the string under a key, or "".
func (o object) text(key string) string {
	value, _ := o.get(key).(string)
	return value
}

// list is the list under a key, or nil.
func (o object) list(key string) []any {
	value, _ := o.get(key).([]any)
	return value
}

// with is a copy in which a key has the value, at the end if it is new.
func (o object) with(key string, value any) object {
	changed := slices.Clone(o)
	for i := range changed {
		if changed[i].key == key {
			changed[i].value = value
			return changed
		}
	}
	return append(changed, member{key, value})
}

// without is a copy that lacks some keys.
func (o object) without(keys ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(keys, m.key) })
}
