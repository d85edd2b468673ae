// Package reconciletest is the part of the Platform API that reconciliation needs, for
// tests: integration configs, their registrations, their status and changes, in memory.
package reconciletest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/proto"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// Server is the API. Its methods may be called while it serves.
type Server struct {
	platformv1connect.UnimplementedIntegrationServiceHandler

	// URL is where it listens.
	URL string

	ended    chan struct{}
	mu       sync.Mutex
	token    string
	pageSize int
	err      error
	configs  map[string]*platformv1.IntegrationConfig
	writes   int // of status
	changes  []*platformv1.Change
	changed  chan struct{} // closed at the next change
	streams  int           // of changes, that are open
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		configs: map[string]*platformv1.IntegrationConfig{}, pageSize: 1000, ended: make(chan struct{}), changed: make(chan struct{}),
	}
	server := connect.NewServer(s.check)
	platformv1connect.RegisterIntegrationServiceHandler(server, s)
	platformv1connect.RegisterChangeServiceHandler(server, s)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	listener := httptest.NewServer(mux)
	t.Cleanup(func() {
		close(s.ended)
		listener.Close()
	})
	s.URL = listener.URL
	return s
}

// Enable makes configs, or changes them, so that they are enabled.
func (s *Server) Enable(ids ...string) { s.set(true, ids) }

// Disable is Enable for configs that are not to run.
func (s *Server) Disable(ids ...string) { s.set(false, ids) }

func (s *Server) set(enabled bool, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		c := s.configs[id]
		if c == nil {
			c = &platformv1.IntegrationConfig{Id: id, TypeId: "test"}
			s.configs[id] = c
		}
		c.Enabled = enabled
		c.Version++
		c.Etag += "."
		s.tell(id, "enabled")
	}
}

// tell sends a change of a config to who listens.
func (s *Server) tell(id string, changed ...string) {
	s.changes = append(s.changes, &platformv1.Change{
		Operation: platformv1.Operation_OPERATION_UPDATE, Kind: platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_CONFIG,
		ResourceId: id, ChangedKeys: changed,
	})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Remove forgets configs.
func (s *Server) Remove(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.configs, id)
		s.tell(id)
	}
}

// Fail has every call fail with err, until it is called with nil.
func (s *Server) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// RequireToken refuses calls without the bearer token.
func (s *Server) RequireToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// SetPageSize bounds the entries of a page.
func (s *Server) SetPageSize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageSize = n
}

// Config is a copy of a config, nil if there is none.
func (s *Server) Config(id string) *platformv1.IntegrationConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.CloneOf(s.configs[id])
}

// Condition is a condition of a config, nil if it was never written.
func (s *Server) Condition(id, conditionType string) *platformv1.Condition {
	for _, c := range s.Config(id).GetStatus().GetConditions() {
		if c.GetType() == conditionType {
			return c
		}
	}
	return nil
}

// Writes counts how often a status was written.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Listeners counts those who listen to changes.
func (s *Server) Listeners() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

// check is an interceptor: it lets calls fail that shall.
func (s *Server) check(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		s.mu.Lock()
		err, token := s.err, s.token
		s.mu.Unlock()
		info, _ := connect.CallInfoForServerContext(ctx)
		switch {
		case err != nil:
			return err
		case token != "" && info.RequestHeader().Get("Authorization") != "Bearer "+token:
			return connect.NewError(connect.CodeUnauthenticated, "no such token")
		}
		return next(ctx, spec, stream)
	}
}

// page gives the ids of a page, and the token of the next.
func (s *Server) page(ids []string, asked int32, token string) ([]string, string) {
	at, _ := slices.BinarySearch(ids, token)
	ids = ids[at:]
	n := min(s.pageSize, int(asked))
	if len(ids) <= n {
		return ids, ""
	}
	return ids[:n], ids[n]
}

// ListIntegrationConfigs implements the service.
func (s *Server) ListIntegrationConfigs(
	_ context.Context, in *platformv1.ListIntegrationConfigsRequest,
) (*platformv1.ListIntegrationConfigsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, next := s.page(slices.Sorted(maps.Keys(s.configs)), in.GetPageSize(), in.GetPageToken())
	out := &platformv1.ListIntegrationConfigsResponse{NextPageToken: next}
	for _, id := range ids {
		out.IntegrationConfigs = append(out.IntegrationConfigs, proto.CloneOf(s.configs[id]))
	}
	return out, nil
}

// ListIntegrationJobRegistrations implements the service: two jobs for each config that
// is enabled.
func (s *Server) ListIntegrationJobRegistrations(
	_ context.Context, in *platformv1.ListIntegrationJobRegistrationsRequest,
) (*platformv1.ListIntegrationJobRegistrationsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var enabled []string
	for _, id := range slices.Sorted(maps.Keys(s.configs)) {
		if s.configs[id].GetEnabled() {
			enabled = append(enabled, id)
		}
	}
	ids, next := s.page(enabled, in.GetPageSize(), in.GetPageToken())
	out := &platformv1.ListIntegrationJobRegistrationsResponse{NextPageToken: next}
	for _, id := range ids {
		for _, jobType := range []string{"ExtractTest", "PrepareTest"} {
			out.Registrations = append(out.Registrations, &platformv1.IntegrationJobRegistration{
				ConfigId: id, ConfigVersion: s.configs[id].GetVersion(), OrganizationSlug: "demo", JobType: jobType,
			})
		}
	}
	return out, nil
}

// GetIntegrationConfig implements the service.
func (s *Server) GetIntegrationConfig(
	_ context.Context, in *platformv1.GetIntegrationConfigRequest,
) (*platformv1.GetIntegrationConfigResponse, error) {
	config := s.Config(in.GetId())
	if config == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("there is no config %s", in.GetId()))
	}
	return &platformv1.GetIntegrationConfigResponse{IntegrationConfig: config}, nil
}

// UpdateIntegrationConfigStatus implements the service.
func (s *Server) UpdateIntegrationConfigStatus(
	_ context.Context, in *platformv1.UpdateIntegrationConfigStatusRequest,
) (*platformv1.UpdateIntegrationConfigStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	config := s.configs[in.GetConfigId()]
	switch {
	case config == nil:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("there is no config %s", in.GetConfigId()))
	case in.GetEtag() != "" && in.GetEtag() != config.GetEtag():
		return nil, connect.NewError(connect.CodeAborted, "the config has another etag by now")
	case in.GetStatus().GetObservedVersion() < config.GetStatus().GetObservedVersion():
		return nil, connect.NewError(connect.CodeAborted, "a later version was reported as observed")
	}
	config.Status = proto.CloneOf(in.GetStatus())
	config.Etag += "."
	s.writes++
	s.tell(in.GetConfigId(), "status")
	return &platformv1.UpdateIntegrationConfigStatusResponse{IntegrationConfig: proto.CloneOf(config)}, nil
}

// StreamChanges implements the service: it sends a checkpoint, and then the changes to come.
func (s *Server) StreamChanges(
	ctx context.Context, _ *platformv1.StreamChangesRequest, stream platformv1connect.ChangeServiceStreamChangesServerStream,
) error {
	s.mu.Lock()
	at := len(s.changes)
	s.streams++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams--
	}()
	if err := stream.Send(&platformv1.StreamChangesResponse{}); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		changes, changed := s.changes[at:], s.changed
		s.mu.Unlock()
		for _, change := range changes {
			if err := stream.Send(&platformv1.StreamChangesResponse{Change: change}); err != nil {
				return err
			}
		}
		at += len(changes)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return nil
		}
	}
}
