package platform

import (
	"context"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	// maxConditionMessage is how many bytes the platform takes.
	maxConditionMessage = 1000
	// writeTries bounds how often conditions are written while others write theirs.
	writeTries = 5
)

// Condition is one aspect of the state of an integration config.
type Condition struct {
	Type string
	// Holds says that its status is true, else it is false.
	Holds   bool
	Reason  string
	Message string // at most 1,000 bytes are written
}

// ConditionOf is the condition of a type, nil if there is none.
func ConditionOf(config *platformv1.IntegrationConfig, conditionType string) *platformv1.Condition {
	for _, c := range config.GetStatus().GetConditions() {
		if c.GetType() == conditionType {
			return c
		}
	}
	return nil
}

// ConditionChange is what is to be written of the status of a config.
type ConditionChange struct {
	Set    []Condition
	Remove []string // types
	// Observed is the version of the config that Set is about.
	Observed int64
}

// WriteConditions changes conditions of a config. Those of others stay as they are. If it
// is all so already, or the config is gone, nothing is written. A condition about an
// earlier version than the one that is there is dropped.
func (c *Client) WriteConditions(ctx context.Context, config string, change ConditionChange) error {
	for try := 1; ; try++ {
		err := c.writeConditions(ctx, config, change)
		if connect.CodeOf(err) == connect.CodeNotFound {
			return nil
		}
		if err == nil || connect.CodeOf(err) != connect.CodeAborted || try == writeTries {
			return Explain(err)
		}
	}
}

func (c *Client) writeConditions(ctx context.Context, config string, change ConditionChange) error {
	answer, err := c.Integrations.GetIntegrationConfig(ctx, &platformv1.GetIntegrationConfigRequest{Id: config})
	if err != nil {
		return err
	}
	now := answer.GetIntegrationConfig()
	status := change.of(now)
	if proto.Equal(status, now.GetStatus()) {
		return nil
	}
	_, err = c.Integrations.UpdateIntegrationConfigStatus(ctx, &platformv1.UpdateIntegrationConfigStatusRequest{
		ConfigId: config, Etag: now.GetEtag(), Status: status,
	})
	return err
}

// of is the status of a config after the change.
func (c ConditionChange) of(config *platformv1.IntegrationConfig) *platformv1.IntegrationConfigStatus {
	status := &platformv1.IntegrationConfigStatus{}
	for _, old := range config.GetStatus().GetConditions() {
		if slices.Contains(c.Remove, old.GetType()) {
			continue
		}
		i := slices.IndexFunc(c.Set, func(set Condition) bool { return set.Type == old.GetType() })
		if i >= 0 && !c.Set[i].is(old, c.Observed) && c.Observed >= old.GetObservedVersion() {
			old = c.Set[i].message(c.Observed)
		}
		status.Conditions = append(status.Conditions, old)
	}
	for _, condition := range c.Set {
		if ConditionOf(config, condition.Type) == nil {
			status.Conditions = append(status.Conditions, condition.message(c.Observed))
		}
	}
	for i, condition := range status.GetConditions() {
		if version := condition.GetObservedVersion(); i == 0 || version < status.GetObservedVersion() {
			status.ObservedVersion = version
		}
	}
	return status
}

func (c Condition) is(old *platformv1.Condition, observed int64) bool {
	now := c.message(observed)
	return now.GetStatus() == old.GetStatus() && now.GetReason() == old.GetReason() && now.GetMessage() == old.GetMessage() &&
		observed == old.GetObservedVersion()
}

func (c Condition) message(observed int64) *platformv1.Condition {
	status := platformv1.ConditionStatus_CONDITION_STATUS_FALSE
	if c.Holds {
		status = platformv1.ConditionStatus_CONDITION_STATUS_TRUE
	}
	return &platformv1.Condition{
		Type: c.Type, Status: status, Reason: c.Reason, Message: job.Cut(c.Message, maxConditionMessage), ObservedVersion: observed,
	}
}
