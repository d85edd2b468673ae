package endtoend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// readSeed gives the resources that make dev writes, with texts replaced by others, in pairs.
func readSeed(t *testing.T, replaced ...string) []*platformv1.Resource {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(stacktest.Root(t), "devstack", "internal", "seed", "seed.json"))
	require.NoError(t, err)
	var texts []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(strings.NewReplacer(replaced...).Replace(string(text))), &texts))
	resources := make([]*platformv1.Resource, len(texts))
	for i, text := range texts {
		resources[i] = &platformv1.Resource{}
		require.NoError(t, protojson.Unmarshal(text, resources[i]))
	}
	return resources
}

// readJobs gives the jobs file of make dev for the servers of a stack.
func readJobs(b *bench, replaced ...string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(stacktest.Root(b), "jobs.toml"))
	require.NoError(b, err)
	return strings.NewReplacer(append(replaced, "http://127.0.0.1:8086", b.st.Influx)...).Replace(string(text))
}

// users is the platform as its users see it.
type users struct {
	*platform.Client
	config   platform.Config
	release2 *release2.Client
}

func newUsers(b *bench) *users {
	b.Helper()
	u := &users{config: platform.Config{URL: b.st.Platform.URL, Token: b.st.Platform.Token + ":ada"}}
	var err error
	u.Client, err = platform.New(u.config)
	require.NoError(b, err)
	u.release2, err = release2.New(release2.Config{URL: b.st.Release2.URL, Token: b.st.Release2.Token})
	require.NoError(b, err)
	return u
}

func (u *users) put(ctx context.Context, resources ...*platformv1.Resource) error {
	for _, r := range resources {
		if _, err := platformtest.Put(ctx, u.config, r, ""); err != nil {
			return err
		}
	}
	return nil
}

// organization is one with a site, a station, and a HOBO logger at the station. Other
// programs send points of two more stations: one has a database of its own, and one is in
// that of a neighbour, whose things its records name.
type organization struct {
	id, slug, site, station string
	stationSlug, serial     string
	neighbour               *organization
}

// newOrganization is the nth one. The ids of all look alike.
func newOrganization(n int, slug, stationSlug, serial string) *organization {
	id := func(part int) string { return fmt.Sprintf("5b0f155746a1b867a114e%x%02x", n, part) }
	o := &organization{id: id(0), site: id(1), station: id(2), slug: slug, stationSlug: stationSlug, serial: serial}
	o.neighbour = o
	return o
}

// database is that of its own.
func (o *organization) database() string { return "own_" + strings.ReplaceAll(o.slug, "-", "_") }

// upload is the photo of its station.
func (o *organization) upload() *platformv1.ObjectReference {
	return &platformv1.ObjectReference{Bucket: "uploads", Key: o.id + "/front.jpg"}
}

// private is a picture that is no organization's, and that all name as their logo.
func private() *platformv1.ObjectReference {
	return &platformv1.ObjectReference{Bucket: "archive", Key: "private/picture.jpg"}
}

// further are its further stations.
func (o *organization) further() []*platformv1.Station {
	own := &platformv1.Station{Id: o.id[:22] + "03", Slug: o.stationSlug + "-own", Database: o.database()}
	guest := &platformv1.Station{
		Id: o.id[:22] + "04", Slug: o.stationSlug + "-guest", Database: o.neighbour.database(),
		Photos: []*platformv1.Photo{{Object: o.neighbour.upload()}, {Object: private()}},
	}
	for _, s := range []*platformv1.Station{own, guest} {
		s.OrganizationId, s.Name = o.id, "Station of "+o.slug
	}
	return []*platformv1.Station{own, guest}
}

// measurementOf is that of a table of a station.
func measurementOf(stationSlug, table string) string {
	return "station_" + strings.ReplaceAll(stationSlug, "-", "_") + "_source_" + table
}

// account and logger are the ids of its configs.
func (o *organization) account() string { return o.slug }
func (o *organization) logger() string  { return o.slug + "-logger" }

// extractJob is the only job that the configs make, besides their orchestrators.
func (o *organization) extractJob() string { return "extract_hobo_time_frame." + o.account() }

func (o *organization) measurement() string { return measurementOf(o.stationSlug, o.serial) }

// stationWith is its station with further fields.
func (o *organization) stationWith(change func(*platformv1.Station)) *platformv1.Resource {
	s := &platformv1.Station{
		Id: o.station, OrganizationId: o.id, Name: "Station of " + o.slug, Slug: o.stationSlug, Database: "common1",
		IsActive: true, IsEnabled: true, IsStationary: true, TimeZone: "PST",
		Deployments: []*platformv1.Deployment{{SiteId: o.site}},
	}
	change(s)
	return &platformv1.Resource{Resource: &platformv1.Resource_Station{Station: s}}
}

// resources are what a user makes, one after the other.
func (o *organization) resources(vendor string) []*platformv1.Resource {
	text := func(value string) *platformv1.VariableValue {
		return &platformv1.VariableValue{Value: &platformv1.VariableValue_StringValue{StringValue: value}}
	}
	config := func(c *platformv1.IntegrationConfig) *platformv1.Resource {
		c.OrganizationId, c.Name, c.Enabled, c.OperationMode = o.id, "HOBOs of "+o.slug, true, platformv1.OperationMode_OPERATION_MODE_LIVE
		return &platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: c}}
	}
	further := o.further()
	return []*platformv1.Resource{
		{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
			Id: o.id, Name: "Organization " + o.slug, Slug: o.slug, IsEnabled: true, Logo: private(),
		}}},
		{Resource: &platformv1.Resource_Site{Site: &platformv1.Site{Id: o.site, OrganizationId: o.id, Name: "Site of " + o.slug, Slug: "site-" + o.slug}}},
		o.stationWith(func(*platformv1.Station) {}),
		{Resource: &platformv1.Resource_Station{Station: further[0]}},
		{Resource: &platformv1.Resource_Station{Station: further[1]}},
		config(&platformv1.IntegrationConfig{Id: o.account(), TypeId: "hobolink-account", Values: map[string]*platformv1.VariableValue{
			"base_url": text(vendor), "location": text("common1"), "backfill": text("PT3H"),
			"token": {Value: &platformv1.VariableValue_Secret{Secret: &platformv1.SecretReference{Name: "vendor"}}},
		}}),
		config(&platformv1.IntegrationConfig{Id: o.logger(), TypeId: "hobolink-logger", StationId: o.station, Values: map[string]*platformv1.VariableValue{
			"account": {Value: &platformv1.VariableValue_ConfigId{ConfigId: o.account()}}, "serial": text(o.serial),
		}}),
	}
}

// vendor is a HOBOlink account with loggers that have measured until a moment ago.
type vendor struct {
	*hobolinktest.Handler
	url string
	now time.Time
}

const vendorToken = "token-of-the-vendor"

func newVendor(t *testing.T, seed uint64, serials ...string) *vendor {
	t.Helper()
	v := &vendor{now: time.Now().UTC()}
	v.Handler = hobolinktest.NewHandler(hobolinktest.Options{
		Seed: seed, RateLimit: 1000, Token: vendorToken, Loggers: serials, Now: func() time.Time { return v.now },
	})
	v.url = stacktest.Serve(t, v)
	return v
}

// measured is how many times of a logger a database has to have.
func (v *vendor) measured(serial string) int64 {
	var first time.Time
	for _, request := range v.Requests() {
		if len(request.Loggers) == 1 && request.Loggers[0] == serial && (first.IsZero() || request.Start.Before(first)) {
			first = request.Start
		}
	}
	if first.IsZero() {
		return -1
	}
	times := map[time.Time]bool{}
	for _, o := range v.Observations(serial, first, v.now) {
		times[o.Time] = true
	}
	return int64(len(times))
}
