package platform_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// api is a reference Platform API of a test, with a clock.
type api struct {
	*platform.Client
	platform.Config
	server  *reference.Server
	options reference.Options

	mu    sync.Mutex
	ahead time.Duration // of the clock
}

func start(t *testing.T, o reference.Options) *api {
	t.Helper()
	a := &api{options: o}
	a.options.Folder = t.TempDir()
	a.options.Now = func() time.Time {
		a.mu.Lock()
		defer a.mu.Unlock()
		return time.Now().Add(a.ahead)
	}
	a.options.Failed = func(err error) { t.Error(err) }
	a.run(t)
	t.Cleanup(func() { _ = a.server.Stop() })
	return a
}

func (a *api) run(t *testing.T) {
	t.Helper()
	var err error
	a.server, err = reference.Start(t.Context(), a.options)
	require.NoError(t, err)
	a.Config = platform.Config{URL: a.server.URL(), Token: reference.Token}
	a.Client, err = platform.New(a.Config)
	require.NoError(t, err)
}

// restart stops the server and starts it on its data.
func (a *api) restart(t *testing.T) {
	t.Helper()
	require.NoError(t, a.server.Stop())
	a.run(t)
}

func (a *api) advance(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ahead += d
}

// put stores a resource as a user would.
func (a *api) put(t *testing.T, r *platformv1.Resource) *platformv1.Resource {
	t.Helper()
	stored, err := platformtest.Put(t.Context(), a.as("user:ada"), r, "")
	require.NoError(t, err)
	return stored
}

func (a *api) as(name string) platform.Config {
	return platform.Config{URL: a.URL, Token: a.Token + ":" + name}
}

func (a *api) delete(t *testing.T, kind, id string) {
	t.Helper()
	require.NoError(t, platformtest.Delete(t.Context(), a.as("user:ada"), kind, id))
}

func id(n int) string { return fmt.Sprintf("%024x", n) }

func organization(n int) *platformv1.Resource {
	return &platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
		Id: id(n), Name: fmt.Sprint("Organization ", n), Slug: fmt.Sprint("org-", n), IsEnabled: true,
	}}}
}

func station(n, organization int) *platformv1.Resource {
	return &platformv1.Resource{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
		Id: id(n), OrganizationId: id(organization), Name: fmt.Sprint("Station ", n), Slug: fmt.Sprint("station-", n),
	}}}
}

func datastream(n, organization int) *platformv1.Resource {
	return &platformv1.Resource{Resource: &platformv1.Resource_Datastream{Datastream: &platformv1.Datastream{
		Id: id(n), OrganizationId: id(organization), Name: fmt.Sprint("Datastream ", n),
	}}}
}

// requireReason requires an error with the code and the reason.
func requireReason(t *testing.T, err error, code connect.Code, reason platformv1.ErrorReason) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, connect.CodeOf(err), "%v", err)
	require.Equal(t, reason, platform.Reason(err), "%v", err)
}

func requireEqual(t *testing.T, want, got proto.Message, args ...any) {
	t.Helper()
	if !proto.Equal(want, got) {
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), args...)
	}
}

// stream is a stream of changes.
type stream struct {
	platformv1connect.ChangeServiceStreamChangesClientStream
	end context.CancelFunc
}

func (a *api) stream(t *testing.T, r *platformv1.StreamChangesRequest) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s, err := a.Changes.StreamChanges(ctx, r)
	require.NoError(t, err)
	return &stream{s, cancel}
}

func snapshot(kinds ...platformv1.ResourceKind) *platformv1.StreamChangesRequest {
	return &platformv1.StreamChangesRequest{Kinds: kinds, Start: &platformv1.StreamChangesRequest_Snapshot{Snapshot: true}}
}

func now(kinds ...platformv1.ResourceKind) *platformv1.StreamChangesRequest {
	return &platformv1.StreamChangesRequest{Kinds: kinds, Start: &platformv1.StreamChangesRequest_Now{Now: true}}
}

func resume(token string, kinds ...platformv1.ResourceKind) *platformv1.StreamChangesRequest {
	return &platformv1.StreamChangesRequest{Kinds: kinds, Start: &platformv1.StreamChangesRequest_ResumeToken{ResumeToken: token}}
}

func (s *stream) next(t *testing.T) *platformv1.StreamChangesResponse {
	t.Helper()
	response, err := s.Receive()
	require.NoError(t, err)
	require.NotEmpty(t, response.GetResumeToken())
	return response
}

// change is the next change; checkpoints are passed over.
func (s *stream) change(t *testing.T) *platformv1.StreamChangesResponse {
	t.Helper()
	for {
		if response := s.next(t); response.GetChange() != nil {
			return response
		}
	}
}

// checkpoint reads changes up to the next checkpoint.
func (s *stream) checkpoint(t *testing.T) (changes []*platformv1.Change, token string) {
	t.Helper()
	for {
		response := s.next(t)
		if response.GetChange() == nil {
			return changes, response.GetResumeToken()
		}
		changes = append(changes, response.GetChange())
	}
}

// fails reads until the stream fails.
func (s *stream) fails(t *testing.T) error {
	t.Helper()
	for {
		if _, err := s.Receive(); err != nil {
			require.False(t, errors.Is(err, context.DeadlineExceeded), "the stream did not fail")
			return err
		}
	}
}

const (
	create = platformv1.Operation_OPERATION_CREATE
	update = platformv1.Operation_OPERATION_UPDATE
	remove = platformv1.Operation_OPERATION_DELETE
	read   = platformv1.Operation_OPERATION_READ

	kindOrganization = platformv1.ResourceKind_RESOURCE_KIND_ORGANIZATION
	kindStation      = platformv1.ResourceKind_RESOURCE_KIND_STATION
	kindDatastream   = platformv1.ResourceKind_RESOURCE_KIND_DATASTREAM
)
