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
	// Observed is the version of the config that the conditions are about. 0 leaves that
	// of the other conditions; if there are none, it is the version in force.
	Observed int64
}

// WriteConditions changes conditions of a config. Those of others stay as they are. If it
// is all so already, or the config is gone, nothing is written. Conditions about an
// earlier version than the observed one are dropped: who knows the later one writes its own.
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
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	answer, err := c.Integrations.GetIntegrationConfig(ctx, &platformv1.GetIntegrationConfigRequest{Id: config})
	if err != nil {
		return err
	}
	now := answer.GetIntegrationConfig()
	status := change.of(now)
	if proto.Equal(status, now.GetStatus()) || change.Observed != 0 && change.Observed < now.GetStatus().GetObservedVersion() {
		return nil
	}
	_, err = c.Integrations.UpdateIntegrationConfigStatus(ctx, &platformv1.UpdateIntegrationConfigStatusRequest{
		ConfigId: config, Etag: now.GetEtag(), Status: status,
	})
	return err
}

// of is the status of a config after the change.
func (c ConditionChange) of(config *platformv1.IntegrationConfig) *platformv1.IntegrationConfigStatus {
	status := &platformv1.IntegrationConfigStatus{ObservedVersion: config.GetStatus().GetObservedVersion()}
	mine := slices.Clone(c.Remove)
	for _, condition := range c.Set {
		mine = append(mine, condition.Type)
	}
	others := false
	for _, old := range config.GetStatus().GetConditions() {
		if slices.Contains(c.Remove, old.GetType()) {
			continue
		}
		others = others || !slices.Contains(mine, old.GetType())
		i := slices.IndexFunc(c.Set, func(mine Condition) bool { return mine.Type == old.GetType() })
		if i >= 0 && !c.Set[i].is(old) {
			old = c.Set[i].message()
		}
		status.Conditions = append(status.Conditions, old)
	}
	for _, condition := range c.Set {
		if ConditionOf(config, condition.Type) == nil {
			status.Conditions = append(status.Conditions, condition.message())
		}
	}
	switch {
	case c.Observed != 0:
		status.ObservedVersion = c.Observed
	case !others:
		status.ObservedVersion = config.GetVersion()
	}
	return status
}

func (c Condition) is(old *platformv1.Condition) bool {
	now := c.message()
	return now.GetStatus() == old.GetStatus() && now.GetReason() == old.GetReason() && now.GetMessage() == old.GetMessage()
}

func (c Condition) message() *platformv1.Condition {
	status := platformv1.ConditionStatus_CONDITION_STATUS_FALSE
	if c.Holds {
		status = platformv1.ConditionStatus_CONDITION_STATUS_TRUE
	}
	return &platformv1.Condition{Type: c.Type, Status: status, Reason: c.Reason, Message: job.Cut(c.Message, maxConditionMessage)}
}
