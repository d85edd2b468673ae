package job

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// setDefaults gives every field that is zero the value of its tag default, at any
// depth. The values of maps are left alone.
func setDefaults(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		return setDefaults(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := setDefaults(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() && !field.Anonymous {
				continue
			}
			if err := setDefault(v.Field(i), field); err != nil {
				return fmt.Errorf("field %s: %w", field.Name, err)
			}
		}
	}
	return nil
}

func setDefault(v reflect.Value, field reflect.StructField) error {
	text, found := field.Tag.Lookup("default")
	switch {
	case !found:
		return setDefaults(v)
	case !v.IsZero():
		return nil
	}
	into := v.Addr().Interface()
	if json.Unmarshal([]byte(text), into) == nil {
		return nil
	}
	// A text is written without quotes.
	quoted, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(quoted, into)
	}
	if err != nil {
		return fmt.Errorf("default %q: %w", text, err)
	}
	return nil
}
