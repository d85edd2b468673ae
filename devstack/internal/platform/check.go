package platform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func (s *integrationService) CheckIntegrationConfig(ctx context.Context, r *platformv1.CheckIntegrationConfigRequest) (*platformv1.CheckIntegrationConfigResponse, error) {
	config := r.GetIntegrationConfig()
	if config == nil {
		config = &platformv1.IntegrationConfig{}
	}
	checked, err := check(ctx, s.store, config)
	if err != nil {
		return nil, failure(err)
	}
	response := &platformv1.CheckIntegrationConfigResponse{Findings: checked.findings}
	if len(checked.findings) == 0 {
		response.Registrations = checked.registrations()
	}
	return response, nil
}

// checked is a config with what it refers to, as far as that is there, and what is wrong
// with it.
type checked struct {
	config       *platformv1.IntegrationConfig
	organization *platformv1.Organization
	station      *platformv1.Station
	kind         *platformv1.IntegrationType
	references   map[string]*platformv1.IntegrationConfig // by name of variable
	findings     []*platformv1.Finding
}

func (c *checked) add(field, format string, args ...any) {
	c.findings = append(c.findings, &platformv1.Finding{Field: field, Message: fmt.Sprintf(format, args...)})
}

// check reads what a config refers to and finds what is wrong.
func check(ctx context.Context, from getter, config *platformv1.IntegrationConfig) (*checked, error) {
	c := &checked{config: config, references: map[string]*platformv1.IntegrationConfig{}}
	c.checkForm()
	var err error
	if c.organization, err = find[*platformv1.Organization](ctx, from, kindOrganization, config.GetOrganizationId()); err != nil {
		return nil, err
	}
	if c.kind, err = find[*platformv1.IntegrationType](ctx, from, kindType, config.GetTypeId()); err != nil {
		return nil, err
	}
	if c.station, err = find[*platformv1.Station](ctx, from, kindStation, config.GetStationId()); err != nil {
		return nil, err
	}
	c.checkParents()
	if c.kind == nil {
		return c, nil
	}
	return c, c.checkValues(ctx, from)
}

// find is a resource, or nil if there is none.
func find[M proto.Message](ctx context.Context, from getter, kind platformv1.ResourceKind, id string) (m M, err error) {
	if id == "" {
		return m, nil
	}
	m, err = get[M](ctx, from, kind, id)
	if isNotFound(err) {
		err = nil
	}
	return m, err
}

// checkForm finds what the contract forbids.
func (c *checked) checkForm() {
	err := protovalidate.Validate(c.config)
	if invalid, ok := errors.AsType[*protovalidate.ValidationError](err); ok {
		for _, violation := range invalid.Violations {
			c.add(protovalidate.FieldPathString(violation.Proto.GetField()), "%s", violation.Proto.GetMessage())
		}
	}
}

func (c *checked) checkParents() {
	switch {
	case c.config.GetOrganizationId() == "":
	case c.organization == nil:
		c.add("organization_id", "there is no such organization")
	case c.organization.GetDeleteTime() != nil:
		c.add("organization_id", "the organization is marked as deleted")
	}
	if c.config.GetTypeId() != "" && c.kind == nil {
		c.add("type_id", "there is no such integration type")
	}
	stationWanted := c.kind.GetScope() == platformv1.IntegrationScope_INTEGRATION_SCOPE_STATION
	switch {
	case c.kind == nil:
	case !stationWanted && c.config.GetStationId() != "":
		c.add("station_id", "configs of the type %s belong to an organization, not to a station", c.kind.GetId())
	case stationWanted && c.config.GetStationId() == "":
		c.add("station_id", "configs of the type %s belong to a station: name it", c.kind.GetId())
	case stationWanted && (c.station == nil || c.station.GetOrganizationId() != c.config.GetOrganizationId()):
		c.add("station_id", "the organization has no such station")
	}
}

func (c *checked) checkValues(ctx context.Context, from getter) error {
	values := c.config.GetValues()
	known := map[string]bool{}
	for _, variable := range c.kind.GetVariables() {
		name, field := variable.GetName(), "values."+variable.GetName()
		known[name] = true
		value, given := values[name]
		switch {
		case !given && variable.GetRequired():
			c.add(field, "the variable is required")
		case !given:
		case typeOf(value) != variable.GetType():
			c.add(field, "the value is not of the type %s", strings.ToLower(strings.TrimPrefix(variable.GetType().String(), "VARIABLE_TYPE_")))
		case variable.GetType() == platformv1.VariableType_VARIABLE_TYPE_CONFIG:
			if err := c.checkReference(ctx, from, variable, value.GetConfigId()); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !known[name] {
			c.add("values."+name, "the type %s has no such variable", c.kind.GetId())
		}
	}
	return nil
}

func (c *checked) checkReference(ctx context.Context, from getter, variable *platformv1.Variable, id string) error {
	referred, err := find[*platformv1.IntegrationConfig](ctx, from, kindConfig, id)
	if err != nil {
		return err
	}
	field := "values." + variable.GetName()
	switch {
	case referred == nil || referred.GetOrganizationId() != c.config.GetOrganizationId():
		c.add(field, "the organization has no such config")
	case variable.GetConfigTypeId() != "" && referred.GetTypeId() != variable.GetConfigTypeId():
		c.add(field, "the config is of the type %s, not %s", referred.GetTypeId(), variable.GetConfigTypeId())
	case !referred.GetEnabled():
		c.add(field, "the config is not enabled")
	default:
		c.references[variable.GetName()] = referred
	}
	return nil
}

func typeOf(value *platformv1.VariableValue) platformv1.VariableType {
	switch value.GetValue().(type) {
	case *platformv1.VariableValue_StringValue:
		return platformv1.VariableType_VARIABLE_TYPE_STRING
	case *platformv1.VariableValue_NumberValue:
		return platformv1.VariableType_VARIABLE_TYPE_NUMBER
	case *platformv1.VariableValue_BooleanValue:
		return platformv1.VariableType_VARIABLE_TYPE_BOOLEAN
	case *platformv1.VariableValue_StringsValue:
		return platformv1.VariableType_VARIABLE_TYPE_STRINGS
	case *platformv1.VariableValue_Secret:
		return platformv1.VariableType_VARIABLE_TYPE_SECRET
	case *platformv1.VariableValue_ConfigId:
		return platformv1.VariableType_VARIABLE_TYPE_CONFIG
	default:
		return platformv1.VariableType_VARIABLE_TYPE_UNSPECIFIED
	}
}
