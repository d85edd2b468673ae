package openapi

import (
	"slices"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// wellKnown are the schemas of messages that JSON writes in a form of their own.
var wellKnown = map[protoreflect.FullName]object{
	"google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
	"google.protobuf.Duration": {
		"type": "string", "pattern": `^(-?[0-9]+(\.[0-9]{1,9})?s|P[0-9.WDTHMS]+)$`, "examples": []any{"1.5s", "PT15M"},
	},
	"google.protobuf.Struct": {"type": "object"},
	"google.protobuf.Value":  {},
}

// message is the schema of a message, which it adds to the document.
func (d *document) message(m protoreflect.MessageDescriptor) object {
	if schema, ok := wellKnown[m.FullName()]; ok {
		return clone(schema)
	}
	name := shortName(m.FullName(), m.ParentFile().Package())
	if _, known := d.schemas[name]; known {
		return ref(name)
	}
	schema := object{"type": "object"}
	d.schemas[name] = schema // Before its fields: they may lead back.
	if text := d.comment(m.FullName()); text != "" {
		schema["description"] = text
	}
	properties := object{}
	var required []any
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		properties[f.JSONName()] = d.field(f)
		if rulesOf(f).GetRequired() {
			required = append(required, f.JSONName())
		}
	}
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	d.exactlyOne(m, schema)
	return ref(name)
}

// exactlyOne adds which fields exclude each other.
func (d *document) exactlyOne(m protoreflect.MessageDescriptor, schema object) {
	var all []any
	add := func(names []string) {
		var one []any
		for _, name := range names {
			one = append(one, object{"required": []any{m.Fields().ByName(protoreflect.Name(name)).JSONName()}})
		}
		all = append(all, object{"oneOf": one})
	}
	for i := range m.Oneofs().Len() {
		oneof := m.Oneofs().Get(i)
		rules, _ := proto.GetExtension(oneof.Options(), validate.E_Oneof).(*validate.OneofRules)
		if oneof.IsSynthetic() || !rules.GetRequired() {
			continue
		}
		var names []string
		for n := range oneof.Fields().Len() {
			names = append(names, string(oneof.Fields().Get(n).Name()))
		}
		add(names)
	}
	rules, _ := proto.GetExtension(m.Options(), validate.E_Message).(*validate.MessageRules)
	for _, oneof := range rules.GetOneof() {
		if oneof.GetRequired() {
			add(oneof.GetFields())
		}
	}
	if len(all) > 0 {
		schema["allOf"] = all
	}
}

func rulesOf(f protoreflect.FieldDescriptor) *validate.FieldRules {
	rules, _ := proto.GetExtension(f.Options(), validate.E_Field).(*validate.FieldRules)
	return rules
}

// field is the schema of a field with its description and constraints.
func (d *document) field(f protoreflect.FieldDescriptor) object {
	rules := rulesOf(f)
	var schema object
	switch {
	case f.IsMap():
		schema = object{"type": "object", "additionalProperties": d.value(f.MapValue())}
		if n := rules.GetMap(); n.HasMaxPairs() {
			schema["maxProperties"] = n.GetMaxPairs()
		}
	case f.IsList():
		items := d.value(f)
		constrain(items, rules.GetRepeated().GetItems())
		schema = object{"type": "array", "items": items}
		if r := rules.GetRepeated(); r.HasMinItems() {
			schema["minItems"] = r.GetMinItems()
		}
		if r := rules.GetRepeated(); r.HasMaxItems() {
			schema["maxItems"] = r.GetMaxItems()
		}
	default:
		schema = d.value(f)
		constrain(schema, rules)
	}
	if text := d.comment(f.FullName()); text != "" {
		schema["description"] = text
	}
	return schema
}

// value is the schema of one value of a field.
func (d *document) value(f protoreflect.FieldDescriptor) object {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	case protoreflect.BytesKind:
		return object{"type": "string", "contentEncoding": "base64"}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return object{"type": "number"}
	case protoreflect.Int64Kind, protoreflect.Uint64Kind, protoreflect.Sint64Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		// Answers have texts: JSON readers lose digits of numbers.
		return object{"type": []any{"string", "integer"}, "format": "int64"}
	case protoreflect.EnumKind:
		return d.enum(f.Enum())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return d.message(f.Message())
	default:
		return object{"type": "integer", "format": "int32"}
	}
}

// enum is the schema of an enum, which it adds to the document.
func (d *document) enum(e protoreflect.EnumDescriptor) object {
	name := shortName(e.FullName(), e.ParentFile().Package())
	if _, known := d.schemas[name]; known {
		return ref(name)
	}
	var names []any
	text := d.comment(e.FullName())
	for i := range e.Values().Len() {
		value := e.Values().Get(i)
		names = append(names, string(value.Name()))
		if comment := d.comments[string(e.FullName())+"."+string(value.Name())]; comment != "" {
			text += "\n\n" + string(value.Name()) + ": " + comment
		}
	}
	schema := object{"type": "string", "enum": names}
	if text != "" {
		schema["description"] = text
	}
	d.schemas[name] = schema
	return ref(name)
}

// constrain adds the rules of a value.
func constrain(schema object, rules *validate.FieldRules) {
	if s := rules.GetString(); s != nil {
		constrainText(schema, s, rules.GetIgnore())
	}
	for _, bounds := range []protoreflect.Message{
		message(rules.GetInt32()), message(rules.GetInt64()), message(rules.GetDouble()),
	} {
		if bounds == nil {
			continue
		}
		for rule, keyword := range map[protoreflect.Name]string{
			"gte": "minimum", "gt": "exclusiveMinimum", "lte": "maximum", "lt": "exclusiveMaximum",
		} {
			if f := bounds.Descriptor().Fields().ByName(rule); bounds.Has(f) {
				schema[keyword] = bounds.Get(f).Interface()
			}
		}
	}
	if slices.Contains(rules.GetEnum().GetNotIn(), 0) {
		schema["not"] = object{"enum": []any{"", 0}}
	}
}

// message is a message by reflection, nil if it is not there.
func message[M interface {
	comparable
	proto.Message
}](m M) protoreflect.Message {
	var none M
	if m == none {
		return nil
	}
	return m.ProtoReflect()
}

func constrainText(schema object, s *validate.StringRules, ignore validate.Ignore) {
	if s.GetUuid() {
		schema["format"] = "uuid"
	}
	if s.HasPattern() {
		schema["pattern"] = s.GetPattern()
	}
	if s.HasMinLen() && ignore != validate.Ignore_IGNORE_IF_ZERO_VALUE {
		schema["minLength"] = s.GetMinLen()
	}
	switch {
	case s.HasMaxLen():
		schema["maxLength"] = s.GetMaxLen()
	case s.HasMaxBytes():
		schema["maxLength"] = s.GetMaxBytes() // No text has more characters than bytes.
	}
}

func clone(schema object) object {
	copied := object{}
	for key, value := range schema {
		copied[key] = value
	}
	return copied
}
