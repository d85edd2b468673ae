package reversesync_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const organizationID = "5a8f00000000000000000001"

// syncSite is both releases, and a syncer between them.
type syncSite struct {
	*reversesync.Syncer

	other    *reversesync.Syncer // another worker's, whose requests are not counted
	env      map[string]string
	platform platform.Config
	release2 stack.API
	requests *requests
	human    *release2.Client // somebody who edits documents of Release 2
	client   *pipeline.Client
}

// requests counts what reverse sync asks of both releases.
type requests struct {
	all, writes atomic.Int64
	// unlimited counts requests that have no time limit.
	unlimited atomic.Int64
	// instead answers a request, unless it returns 0: with this status, or for -1 as a
	// server that is away.
	instead func(*http.Request) int
	// seen is called after each request that both releases have answered.
	seen func(*http.Request)
}

// isWrite reports whether a request writes a document.
func isWrite(request *http.Request) bool {
	return request.Method == http.MethodPatch || request.Method == http.MethodPost && request.Header.Get("Content-Type") == "application/json"
}

// RoundTrip implements http.RoundTripper.
func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.all.Add(1)
	if _, limited := request.Context().Deadline(); !limited {
		r.unlimited.Add(1)
	}
	if isWrite(request) {
		r.writes.Add(1)
	}
	if r.instead != nil {
		switch status := r.instead(request); status {
		case 0:
		case -1:
			return nil, errors.New("connection refused")
		default:
			body := `{"name":"` + strings.ReplaceAll(http.StatusText(status), " ", "") + `","message":"as the test says"}`
			return &http.Response{StatusCode: status, Request: request, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if r.seen != nil {
		r.seen(request)
	}
	return response, err
}

// newSyncSite starts servers of the test's own, with one organization.
func newSyncSite(t *testing.T) *syncSite {
	t.Helper()
	st := stacktest.StartOwn(t, "--only", "nats,platform")
	r := &syncSite{env: st.Variables(), platform: platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, release2: st.Release2, requests: &requests{}}
	var err error
	r.client = st.Pipeline(t)
	r.human, err = release2.New(release2.Config{URL: st.Release2.URL, Token: st.Release2.Token + ":ada"})
	require.NoError(t, err)

	counted := &http.Client{Transport: r.requests}
	documents, err := release2.New(release2.Config{URL: st.Release2.URL, Token: st.Release2.Token, HTTPClient: counted})
	require.NoError(t, err)
	source, err := platform.New(platform.Config{URL: st.Platform.URL, Token: st.Platform.Token, HTTPClient: counted})
	require.NoError(t, err)
	r.Syncer, err = reversesync.New(t.Context(), source, documents, r.client)
	require.NoError(t, err)
	for _, line := range st.Env() {
		name, value, _ := strings.Cut(line, "=")
		r.env[name] = value
	}
	r.other, err = reversesync.Open(t.Context(), r.getenv, r.client)
	require.NoError(t, err)
	r.put(t, &platformv1.Organization{Id: organizationID, Name: "Erica", Slug: "erica", IsEnabled: true})
	return r
}

func (r *syncSite) getenv(name string) string { return r.env[name] }

// put writes an entity into Release 3.
func (r *syncSite) put(t *testing.T, entity reversesync.Entity) {
	t.Helper()
	_, err := platformtest.Put(t.Context(), r.platform, resource(entity), "")
	require.NoError(t, err)
}

func resource(entity reversesync.Entity) *platformv1.Resource {
	switch e := entity.(type) {
	case *platformv1.Organization:
		return &platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: e}}
	case *platformv1.Site:
		return &platformv1.Resource{Resource: &platformv1.Resource_Site{Site: e}}
	case *platformv1.Station:
		return &platformv1.Resource{Resource: &platformv1.Resource_Station{Station: e}}
	case *platformv1.ThingType:
		return &platformv1.Resource{Resource: &platformv1.Resource_ThingType{ThingType: e}}
	case *platformv1.Datastream:
		return &platformv1.Resource{Resource: &platformv1.Resource_Datastream{Datastream: e}}
	case *platformv1.Vocabulary:
		return &platformv1.Resource{Resource: &platformv1.Resource_Vocabulary{Vocabulary: e}}
	}
	return nil
}

func newStation(n int) *platformv1.Station {
	return &platformv1.Station{
		Id: fmt.Sprintf("%024x", n), OrganizationId: organizationID, Name: fmt.Sprintf("Station %d", n), Slug: fmt.Sprintf("station-%d", n),
		Description: "Measures the weather", IsActive: true, IsEnabled: true, IsStationary: true, TimeZone: "America/Los_Angeles",
		Geo: &platformv1.GeoPoint{Longitude: float64(n%360) - 180, Latitude: 40},
	}
}

// putStations writes stations 1 to n, changed.
func (r *syncSite) putStations(t *testing.T, n int, change func(*platformv1.Station)) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for i := 1; i <= n; i++ {
		group.Go(func() error {
			s := newStation(i)
			change(s)
			_, err := platformtest.Put(ctx, r.platform, resource(s), "")
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func unchanged(*platformv1.Station) {}

func kind(t *testing.T, name string) reversesync.Kind {
	t.Helper()
	k, ok := reversesync.KindNamed(name)
	require.True(t, ok)
	return k
}

// sync syncs a kind, and returns what was not in line.
func (r *syncSite) sync(t *testing.T, name string, dryRun bool) (reversesync.Report, []reversesync.Difference) {
	t.Helper()
	var differences []reversesync.Difference
	report, err := r.Sync(t.Context(), kind(t, name), reversesync.Run{
		DryRun: dryRun, Take: func(d reversesync.Difference) { differences = append(differences, d) },
	})
	require.NoError(t, err)
	return report, differences
}

// edit edits a document in Release 2.
func (r *syncSite) edit(t *testing.T, service, id string, set map[string]any) {
	t.Helper()
	d, err := r.human.Get(t.Context(), service, id)
	require.NoError(t, err)
	_, err = r.human.Patch(t.Context(), service, id, d.VersionID(), release2.Patch{Set: set})
	require.NoError(t, err)
}

// remove deletes a document of Release 2, which reverse sync never does.
func (r *syncSite) remove(t *testing.T, service, id string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, r.release2.URL+"/"+service+"/"+id, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+r.release2.Token+":ada")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}
