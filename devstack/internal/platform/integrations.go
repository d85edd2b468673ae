package platform

import (
	"context"
	"strconv"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

type integrationService struct{ store *store.Store }

func (s *integrationService) GetIntegrationType(ctx context.Context, r *platformv1.GetIntegrationTypeRequest) (*platformv1.GetIntegrationTypeResponse, error) {
	found, err := get[*platformv1.IntegrationType](ctx, s.store, kindType, r.GetId())
	return &platformv1.GetIntegrationTypeResponse{IntegrationType: found}, err
}

func (s *integrationService) ListIntegrationTypes(ctx context.Context, r *platformv1.ListIntegrationTypesRequest) (*platformv1.ListIntegrationTypesResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindType}, r, all[*platformv1.IntegrationType])
	return &platformv1.ListIntegrationTypesResponse{IntegrationTypes: found, NextPageToken: next}, err
}

func (s *integrationService) GetIntegrationConfig(ctx context.Context, r *platformv1.GetIntegrationConfigRequest) (*platformv1.GetIntegrationConfigResponse, error) {
	found, err := get[*platformv1.IntegrationConfig](ctx, s.store, kindConfig, r.GetId())
	return &platformv1.GetIntegrationConfigResponse{IntegrationConfig: found}, err
}

func (s *integrationService) ListIntegrationConfigs(ctx context.Context, r *platformv1.ListIntegrationConfigsRequest) (*platformv1.ListIntegrationConfigsResponse, error) {
	f := store.Filter{Kind: kindConfig, OrganizationID: r.GetOrganizationId(), StationID: r.GetStationId()}
	found, next, err := list(ctx, s.store, f, r, func(c *platformv1.IntegrationConfig) bool {
		return r.GetReferencesConfigId() == "" || refersTo(c, r.GetReferencesConfigId())
	})
	return &platformv1.ListIntegrationConfigsResponse{IntegrationConfigs: found, NextPageToken: next}, err
}

func refersTo(c *platformv1.IntegrationConfig, id string) bool {
	for _, value := range c.GetValues() {
		if value.GetConfigId() == id {
			return true
		}
	}
	return false
}

func (s *integrationService) EnableIntegrationConfig(ctx context.Context, r *platformv1.EnableIntegrationConfigRequest) (*platformv1.EnableIntegrationConfigResponse, error) {
	config, err := s.setEnabled(ctx, r, true)
	return &platformv1.EnableIntegrationConfigResponse{IntegrationConfig: config}, err
}

func (s *integrationService) DisableIntegrationConfig(ctx context.Context, r *platformv1.DisableIntegrationConfigRequest) (*platformv1.DisableIntegrationConfigResponse, error) {
	config, err := s.setEnabled(ctx, r, false)
	return &platformv1.DisableIntegrationConfigResponse{IntegrationConfig: config}, err
}

// setEnabled switches a config on or off. One that is so already stays as it is.
func (s *integrationService) setEnabled(ctx context.Context, r interface {
	GetId() string
	GetEtag() string
}, enabled bool) (stored *platformv1.IntegrationConfig, err error) {
	err = s.store.Update(ctx, actorOf(ctx), func(tx *store.Tx) error {
		config, err := get[*platformv1.IntegrationConfig](ctx, tx, kindConfig, r.GetId())
		if err != nil {
			return err
		}
		if err := checkEtag(r.GetEtag(), store.Wrap(config)); err != nil {
			return err
		}
		if config.GetEnabled() == enabled {
			stored = config
			return nil
		}
		config = proto.CloneOf(config)
		config.Enabled = enabled
		config.Version++
		written, err := tx.Put(ctx, store.Wrap(config))
		stored = store.Unwrap[*platformv1.IntegrationConfig](written)
		return err
	})
	return stored, failure(err)
}

func (s *integrationService) UpdateIntegrationConfigStatus(ctx context.Context, r *platformv1.UpdateIntegrationConfigStatusRequest) (*platformv1.UpdateIntegrationConfigStatusResponse, error) {
	response := &platformv1.UpdateIntegrationConfigStatusResponse{}
	err := s.store.Update(ctx, actorOf(ctx), func(tx *store.Tx) error {
		config, err := get[*platformv1.IntegrationConfig](ctx, tx, kindConfig, r.GetConfigId())
		if err != nil {
			return err
		}
		if err := checkEtag(r.GetEtag(), store.Wrap(config)); err != nil {
			return err
		}
		config = proto.CloneOf(config)
		for _, condition := range r.GetStatus().GetConditions() {
			if err := checkObserved(config, condition); err != nil {
				return err
			}
		}
		config.Status = withTransitions(config.GetStatus(), r.GetStatus(), timestamppb.New(tx.Now()))
		written, err := tx.Put(ctx, store.Wrap(config))
		response.IntegrationConfig = store.Unwrap[*platformv1.IntegrationConfig](written)
		return err
	})
	return response, failure(err)
}

// checkObserved refuses a condition about a version that is not there yet, or is earlier
// than that of the condition of before.
func checkObserved(config *platformv1.IntegrationConfig, condition *platformv1.Condition) error {
	observed, stored := condition.GetObservedVersion(), platform.ConditionOf(config, condition.GetType()).GetObservedVersion()
	switch {
	case observed > config.GetVersion():
		return connect.Errorf(connect.CodeInvalidArgument, "condition %s is about version %d, and config %s has the version %d",
			condition.GetType(), observed, config.GetId(), config.GetVersion())
	case observed < stored:
		return platform.Error(connect.CodeAborted, platformv1.ErrorReason_ERROR_REASON_VERSION_BEHIND,
			"condition %s was about version %d of config %s already, and this one is about version %d", condition.GetType(), stored, config.GetId(), observed)
	}
	return nil
}

// withTransitions is a new status in which the times of transitions are those of the old
// one, or now.
func withTransitions(before, after *platformv1.IntegrationConfigStatus, now *timestamppb.Timestamp) *platformv1.IntegrationConfigStatus {
	after = proto.CloneOf(after)
	for _, condition := range after.GetConditions() {
		condition.TransitionTime = now
		for _, old := range before.GetConditions() {
			if old.GetType() == condition.GetType() && old.GetStatus() == condition.GetStatus() {
				condition.TransitionTime = old.GetTransitionTime()
			}
		}
	}
	return after
}

func (s *integrationService) CreateLogEntries(ctx context.Context, r *platformv1.CreateLogEntriesRequest) (*platformv1.CreateLogEntriesResponse, error) {
	err := s.store.Update(ctx, actorOf(ctx), func(tx *store.Tx) error {
		for _, entry := range r.GetLogEntries() {
			if _, err := get[*platformv1.IntegrationConfig](ctx, tx, kindConfig, entry.GetConfigId()); err != nil {
				return err
			}
			if err := tx.AddLogEntry(ctx, entry); err != nil {
				return err
			}
		}
		return nil
	})
	return &platformv1.CreateLogEntriesResponse{}, failure(err)
}

func (s *integrationService) ListLogEntries(ctx context.Context, r *platformv1.ListLogEntriesRequest) (*platformv1.ListLogEntriesResponse, error) {
	before := int64(0)
	token, err := readPageToken("log entries of "+r.GetConfigId(), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	if token != "" {
		if before, err = strconv.ParseInt(token, 10, 64); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, "page_token is not one of this list")
		}
	}
	entries, last, err := s.store.LogEntries(ctx, r.GetConfigId(), before, pageSize(r))
	if err != nil {
		return nil, failure(err)
	}
	response := &platformv1.ListLogEntriesResponse{LogEntries: entries}
	if last != 0 {
		response.NextPageToken = pageToken("log entries of "+r.GetConfigId(), strconv.FormatInt(last, 10))
	}
	return response, nil
}
