package platform

import (
	"context"
	"regexp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// ListIntegrationJobRegistrations leaves configs out with which something is wrong:
// CheckIntegrationConfig says what.
func (s *integrationService) ListIntegrationJobRegistrations(ctx context.Context, r *platformv1.ListIntegrationJobRegistrationsRequest) (*platformv1.ListIntegrationJobRegistrationsResponse, error) {
	configs, next, err := list(ctx, s.store, store.Filter{Kind: kindConfig}, r, func(c *platformv1.IntegrationConfig) bool {
		return c.GetEnabled() && (r.GetConfigId() == "" || r.GetConfigId() == c.GetId()) &&
			(r.GetReferencesConfigId() == "" || refersTo(c, r.GetReferencesConfigId()))
	})
	if err != nil {
		return nil, err
	}
	response := &platformv1.ListIntegrationJobRegistrationsResponse{NextPageToken: next}
	for _, config := range configs {
		c, err := check(ctx, s.store, config)
		if err != nil {
			return nil, failure(err)
		}
		if len(c.findings) == 0 {
			response.Registrations = append(response.Registrations, c.registrations()...)
		}
	}
	return response, nil
}

// registrations are the jobs that a config without findings wants.
func (c *checked) registrations() []*platformv1.IntegrationJobRegistration {
	var registrations []*platformv1.IntegrationJobRegistration
	for _, job := range c.kind.GetJobs() {
		spec, _ := c.fill(structpb.NewStructValue(job.GetSpec()))
		registrations = append(registrations, &platformv1.IntegrationJobRegistration{
			ConfigId:         c.config.GetId(),
			ConfigVersion:    c.config.GetVersion(),
			OrganizationId:   c.organization.GetId(),
			OrganizationSlug: c.organization.GetSlug(),
			StationId:        c.station.GetId(),
			OperationMode:    c.config.GetOperationMode(),
			JobType:          job.GetJobType(),
			Trigger:          proto.CloneOf(job.GetTrigger()),
			Spec:             spec.GetStructValue(),
			Worker:           job.GetWorker(),
		})
	}
	return registrations
}

// reference is how a spec refers to a variable of the config, or of one that it refers to.
var reference = regexp.MustCompile(`^\$\{([a-z0-9_]+)(?:\.([a-z0-9_]+))?\}$`)

// fill puts values in the place of names. It reports false if a name has no value.
func (c *checked) fill(template *structpb.Value) (*structpb.Value, bool) {
	switch v := template.GetKind().(type) {
	case *structpb.Value_StructValue:
		filled := &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for key, value := range v.StructValue.GetFields() {
			if value, ok := c.fill(value); ok {
				filled.Fields[key] = value
			}
		}
		return structpb.NewStructValue(filled), true
	case *structpb.Value_ListValue:
		filled := &structpb.ListValue{}
		for _, value := range v.ListValue.GetValues() {
			if value, ok := c.fill(value); ok {
				filled.Values = append(filled.Values, value)
			}
		}
		return structpb.NewListValue(filled), true
	case *structpb.Value_StringValue:
		if names := reference.FindStringSubmatch(v.StringValue); names != nil {
			return c.value(names[1], names[2])
		}
	}
	return template, true
}

// value is that of a variable, or of one of the config that the variable refers to.
func (c *checked) value(name, of string) (*structpb.Value, bool) {
	if of != "" {
		return specValue(c.references[name].GetValues()[of])
	}
	var text string
	switch name {
	case "config_id":
		text = c.config.GetId()
	case "organization_slug":
		text = c.organization.GetSlug()
	case "station_id":
		text = c.station.GetId()
	case "station_slug":
		text = c.station.GetSlug()
	case "operation_mode":
		text = c.operationMode()
	default:
		return specValue(c.config.GetValues()[name])
	}
	return structpb.NewStringValue(text), text != ""
}

// operationMode is test if the config or one that it refers to is in test mode: what goes
// through a connection that is tried out is not live.
func (c *checked) operationMode() string {
	const test = platformv1.OperationMode_OPERATION_MODE_TEST
	tried := c.config.GetOperationMode() == test
	for _, referred := range c.references {
		tried = tried || referred.GetOperationMode() == test
	}
	if tried {
		return "test"
	}
	return "live"
}

// specValue is a variable's value in a spec.
func specValue(value *platformv1.VariableValue) (*structpb.Value, bool) {
	switch v := value.GetValue().(type) {
	case *platformv1.VariableValue_StringValue:
		return structpb.NewStringValue(v.StringValue), true
	case *platformv1.VariableValue_NumberValue:
		return structpb.NewNumberValue(v.NumberValue), true
	case *platformv1.VariableValue_BooleanValue:
		return structpb.NewBoolValue(v.BooleanValue), true
	case *platformv1.VariableValue_StringsValue:
		list := &structpb.ListValue{}
		for _, text := range v.StringsValue.GetValues() {
			list.Values = append(list.Values, structpb.NewStringValue(text))
		}
		return structpb.NewListValue(list), true
	case *platformv1.VariableValue_Secret:
		return structpb.NewStringValue("secret://" + v.Secret.GetName()), true
	case *platformv1.VariableValue_ConfigId:
		return structpb.NewStringValue(v.ConfigId), true
	default:
		return nil, false
	}
}
