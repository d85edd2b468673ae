package reversesync

import (
	"math"
	"strings"
	"time"
	_ "time/tzdata" // the same zones on every worker; the machine may have no zone files

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Conversion is how a value of an entity becomes one of a document. Without one, a
// message becomes an object of its fields that are set, and an enum the last words of its
// name in lower case.
type Conversion string

// Conversions.
const (
	// asAccessLevel: 0 restricted, 1 metadata, 2 graph, 3 download.
	asAccessLevel Conversion = "access level"
	// asCurrentSite: the site of the latest deployment that has begun and has no end.
	asCurrentSite      Conversion = "current site"
	asDatapointsConfig Conversion = "datapoints config"
	// asMinutes: a duration in minutes, rounded up.
	asMinutes Conversion = "minutes"
	// asPoint: a GeoJSON point.
	asPoint Conversion = "point"
	// asSeconds: a duration in seconds.
	asSeconds Conversion = "seconds"
	// asSlug: with "-" for "_", which Release 2 does not take.
	asSlug Conversion = "slug"
	// asTerms: the labels of each scheme.
	asTerms Conversion = "terms"
	// asZoneAbbreviation: the abbreviation of a zone's standard time.
	asZoneAbbreviation Conversion = "zone abbreviation"
)

// convert makes a value of JSON, or nil if the entity has none.
func (c Conversion) convert(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch c {
	case asAccessLevel:
		if level := int(v.Enum()); level > 0 {
			return level - 1
		}
		return nil
	case asCurrentSite:
		return currentSite(v.List())
	case asDatapointsConfig:
		return datapointsConfig(v.List())
	case asMinutes:
		if length := duration(v); length > 0 {
			return math.Ceil(length.Minutes())
		}
		return nil
	case asPoint:
		return point(v)
	case asSeconds:
		return int64(duration(v) / time.Second)
	case asSlug:
		return strings.ReplaceAll(v.String(), "_", "-")
	case asTerms:
		schemes := map[string]any{}
		v.Map().Range(func(scheme protoreflect.MapKey, terms protoreflect.Value) bool {
			schemes[scheme.String()] = message(terms.Message())["labels"]
			return true
		})
		return schemes
	case asZoneAbbreviation:
		return zoneAbbreviation(v.String())
	}
	return plain(field, v)
}

func plain(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case field.IsMap():
		object := map[string]any{}
		v.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
			object[key.String()] = single(field.MapValue(), item)
			return true
		})
		return object
	case field.IsList():
		list := make([]any, v.List().Len())
		for i := range list {
			list[i] = single(field, v.List().Get(i))
		}
		return list
	}
	return single(field, v)
}

func single(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case field.Message() != nil:
		return message(v.Message())
	case field.Enum() != nil:
		return enum(field.Enum(), v.Enum())
	}
	return v.Interface()
}

// message is an object of the fields that are set.
func message(m protoreflect.Message) map[string]any {
	if object, ok := m.Interface().(interface{ AsMap() map[string]any }); ok {
		return object.AsMap()
	}
	object := map[string]any{}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		object[string(field.Name())] = plain(field, v)
		return true
	})
	return object
}

// enum is what of a value's name its type does not say, or nil for the unspecified one.
func enum(of protoreflect.EnumDescriptor, number protoreflect.EnumNumber) any {
	value := of.Values().ByNumber(number)
	if value == nil || number == 0 {
		return nil
	}
	prefix := strings.TrimSuffix(string(of.Values().ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix))
}

func duration(v protoreflect.Value) time.Duration {
	length, ok := v.Message().Interface().(interface{ AsDuration() time.Duration })
	if !ok {
		return 0
	}
	return length.AsDuration()
}

func point(v protoreflect.Value) any {
	geo, ok := v.Message().Interface().(*platformv1.GeoPoint)
	if !ok {
		return nil
	}
	coordinates := []any{geo.GetLongitude(), geo.GetLatitude()}
	if geo.Altitude != nil {
		coordinates = append(coordinates, geo.GetAltitude())
	}
	return map[string]any{"type": "Point", "coordinates": coordinates}
}

func currentSite(deployments protoreflect.List) any {
	var current *platformv1.Deployment
	now := time.Now()
	for _, d := range messages[*platformv1.Deployment](deployments) {
		if d.GetEndTime() == nil && !d.GetBeginTime().AsTime().After(now) && (current == nil || !d.GetBeginTime().AsTime().Before(current.GetBeginTime().AsTime())) {
			current = d
		}
	}
	if current == nil {
		return nil
	}
	return current.GetSiteId()
}

func datapointsConfig(configs protoreflect.List) any {
	var list []any
	for _, c := range messages[*platformv1.DatapointsConfig](configs) {
		item := map[string]any{"path": c.GetPath(), "params": c.GetParams().AsMap()}
		if c.GetBeginTime() != nil {
			item["begins_at"] = c.GetBeginTime().AsTime().Format(timeLayout)
		}
		if c.GetEndTime() != nil {
			item["ends_before"] = c.GetEndTime().AsTime().Format(timeLayout)
		}
		if c.GetEvaluate() != "" {
			item["actions"] = map[string]any{"evaluate": c.GetEvaluate()}
		}
		list = append(list, item)
	}
	return list
}

func messages[M proto.Message](list protoreflect.List) []M {
	var all []M
	for i := range list.Len() {
		if m, ok := list.Get(i).Message().Interface().(M); ok {
			all = append(all, m)
		}
	}
	return all
}

// zoneAbbreviation is how a zone calls its standard time. A name that is none of a zone
// is an abbreviation already.
func zoneAbbreviation(name string) string {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return name
	}
	// A year whose rules are known: the abbreviation shall not change with the date.
	// Standard time is the one that is further west, in winter or in summer.
	const year = 2025
	january, july := time.Date(year, time.January, 1, 0, 0, 0, 0, zone), time.Date(year, time.July, 1, 0, 0, 0, 0, zone)
	winter, before := january.Zone()
	summer, after := july.Zone()
	if before <= after {
		return winter
	}
	return summer
}
