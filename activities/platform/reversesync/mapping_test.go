package reversesync_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// newEntity makes an empty entity of a kind.
func newEntity(k reversesync.Kind) reversesync.Entity {
	return map[string]reversesync.Entity{
		"vocabulary": &platformv1.Vocabulary{}, "organization": &platformv1.Organization{}, "site": &platformv1.Site{},
		"thing_type": &platformv1.ThingType{}, "station": &platformv1.Station{}, "datastream": &platformv1.Datastream{},
	}[k.Name]
}

// example reads an entity of a kind with its document from testdata.
func example(t *testing.T, k reversesync.Kind) (reversesync.Entity, release2.Document) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + k.Name + ".json")
	require.NoError(t, err)
	var file struct {
		Entity   json.RawMessage
		Document release2.Document
	}
	require.NoError(t, json.Unmarshal(text, &file))
	entity := newEntity(k)
	require.NoError(t, protojson.Unmarshal(file.Entity, entity))
	return entity, file.Document
}

// TestMappings makes documents of the entities in testdata.
func TestMappings(t *testing.T) {
	t.Parallel()
	for _, k := range reversesync.Kinds() {
		entity, want := example(t, k)
		document, err := k.NewDocument(entity)
		require.NoError(t, err)
		require.Equal(t, want, document, k.Name)
	}
}

// notMapped are the fields that Release 2 has no place for, or that are its own.
var notMapped = map[string][]string{
	"vocabulary":   {},
	"organization": {"delete_archive", "delete_time", "finalizers", "logo", "operational_settings.default_time_zone", "operational_settings.sample_interval", "purge_time"},
	"site":         {"description", "is_hidden", "organization_id", "slug", "time_zone"},
	"thing_type":   {},
	"station":      {"database", "photos", "table_discovery_request_time"},
	"datastream":   {},
}

// TestEveryFieldIsMappedOrNot fails for a field of an entity that neither a table nor
// the list above has.
func TestEveryFieldIsMappedOrNot(t *testing.T) {
	t.Parallel()
	for _, k := range reversesync.Kinds() {
		known := slices.Concat([]string{"id", "etag", "modification"}, notMapped[k.Name])
		for _, f := range k.Fields {
			known = append(known, f.From)
		}
		fields := newEntity(k).ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			name := string(field.Name())
			if slices.Contains(known, name) {
				continue
			}
			require.NotNil(t, field.Message(), "%s.%s", k.Name, name)
			for n := range field.Message().Fields().Len() {
				require.Contains(t, known, name+"."+string(field.Message().Fields().Get(n).Name()), k.Name)
			}
		}
	}
}

func TestConversions(t *testing.T) {
	t.Parallel()
	station, _ := reversesync.KindNamed("station")
	for zone, want := range map[string]string{
		"America/Los_Angeles": "PST", "Europe/Berlin": "CET", "Europe/Dublin": "GMT", "Australia/Sydney": "AEST",
		"America/Sao_Paulo": "-03", "PST": "PST", "Local": "Local", "": "UTC",
	} {
		d, err := station.NewDocument(&platformv1.Station{Id: "a", TimeZone: zone})
		require.NoError(t, err)
		require.Equal(t, want, d["time_zone"], zone)
	}
	d, err := station.NewDocument(&platformv1.Station{Id: "a"})
	require.NoError(t, err)
	require.Equal(t, release2.Document{
		"_id": "a", "is_active": false, "is_enabled": false, "is_geo_protected": false, "is_hidden": false, "is_stationary": false,
		"state": "ready", "station_type": "weather", "time_zone": "UTC", "utc_offset": 0.0,
	}, d, "what Release 2 requires")

	datastream, _ := reversesync.KindNamed("datastream")
	for value, name := range platformv1.SourceType_name {
		d, err := datastream.NewDocument(&platformv1.Datastream{Id: "a", SourceType: platformv1.SourceType(value)})
		require.NoError(t, err)
		if value == 0 {
			require.NotContains(t, d, "source_type")
			continue
		}
		require.Equal(t, strings.ToLower(strings.TrimPrefix(name, "SOURCE_TYPE_")), d["source_type"])
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, k := range reversesync.Kinds() {
		found, ok := reversesync.KindOf(k.Resource)
		require.True(t, ok)
		require.Equal(t, k.Name, found.Name)
		require.EqualValues(t, k.Entity, newEntity(k).ProtoReflect().Descriptor().Name())
		require.Equal(t, "RESOURCE_KIND_"+strings.ToUpper(k.Name), k.Resource.String())
	}
	_, ok := reversesync.KindOf(platformv1.ResourceKind_RESOURCE_KIND_TABLE_INFO)
	require.False(t, ok)
	_, ok = reversesync.KindNamed("table")
	require.False(t, ok)
}

// clone copies an entity.
func clone[E proto.Message](entity E) E {
	copied, _ := proto.Clone(entity).(E)
	return copied
}
