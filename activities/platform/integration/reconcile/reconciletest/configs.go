// Package reconciletest writes integration configs into the reference Platform API, for
// tests.
package reconciletest

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// OrganizationID is that of the organization of all configs, whose slug is demo.
const OrganizationID = "5b0f155746a1b867a114e030"

// TypeID is that of the integration type of configs that Enable makes.
const TypeID = "test"

// Platform is a Platform API with an organization.
type Platform struct {
	platform.Config
	Client *platform.Client

	t testing.TB
}

// New starts a Platform API of the test's own: what reconciles sees all configs that there
// are. Configs that Enable makes have two jobs.
func New(t testing.TB) *Platform {
	t.Helper()
	st := stacktest.StartOwn(t, "--only", "platform")
	p := &Platform{Config: platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, t: t}
	var err error
	if p.Client, err = platform.New(p.Config); err != nil {
		t.Fatal(err)
	}
	p.Put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
		Id: OrganizationID, Name: "Demo", Slug: "demo", IsEnabled: true,
	}}})
	p.PutType(&platformv1.IntegrationType{Id: TypeID, Name: "Test", Jobs: []*platformv1.IntegrationJob{
		p.Job("ExtractTest", nil), p.Job("PrepareTest", nil),
	}})
	return p
}

// Job is a continuous job of the extract worker, for an integration type.
func (p *Platform) Job(jobType string, spec map[string]any) *platformv1.IntegrationJob {
	p.t.Helper()
	template, err := structpb.NewStruct(spec)
	if err != nil {
		p.t.Fatal(err)
	}
	return &platformv1.IntegrationJob{JobType: jobType, Worker: "extract", Spec: template, Trigger: &platformv1.JobTrigger{
		Mode: &platformv1.JobTrigger_Continuous{Continuous: &platformv1.ContinuousMode{
			Interval: durationpb.New(time.Second), RestartOnChange: true,
		}},
	}}
}

// Put makes or replaces a resource.
func (p *Platform) Put(r *platformv1.Resource) *platformv1.Resource {
	p.t.Helper()
	stored, err := platformtest.Put(p.t.Context(), p.Config, r, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return stored
}

// PutType makes or replaces an integration type, of inbound data of an organization unless
// it says otherwise.
func (p *Platform) PutType(kind *platformv1.IntegrationType) {
	p.t.Helper()
	kind.Direction = platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND
	if kind.GetScope() == platformv1.IntegrationScope_INTEGRATION_SCOPE_UNSPECIFIED {
		kind.Scope = platformv1.IntegrationScope_INTEGRATION_SCOPE_ORGANIZATION
	}
	p.Put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationType{IntegrationType: kind}})
}

// PutStation makes a station.
func (p *Platform) PutStation(id, slug string) {
	p.t.Helper()
	p.Put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
		Id: id, OrganizationId: OrganizationID, Name: slug, Slug: slug,
	}}})
}

// PutConfig makes or replaces a config, in live mode unless it says otherwise.
func (p *Platform) PutConfig(config *platformv1.IntegrationConfig) *platformv1.IntegrationConfig {
	p.t.Helper()
	config.OrganizationId, config.Name = OrganizationID, config.GetId()
	if config.GetOperationMode() == platformv1.OperationMode_OPERATION_MODE_UNSPECIFIED {
		config.OperationMode = platformv1.OperationMode_OPERATION_MODE_LIVE
	}
	return p.Put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: config}}).GetIntegrationConfig()
}

// Enable enables configs. Those that are not there are made, of the type TypeID.
func (p *Platform) Enable(ids ...string) {
	p.t.Helper()
	known := p.known()
	for _, id := range ids {
		if !slices.Contains(known, id) {
			p.PutConfig(&platformv1.IntegrationConfig{Id: id, TypeId: TypeID, Enabled: true})
			continue
		}
		if _, err := p.Client.Integrations.EnableIntegrationConfig(p.t.Context(), &platformv1.EnableIntegrationConfigRequest{Id: id}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Disable disables configs.
func (p *Platform) Disable(ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		if _, err := p.Client.Integrations.DisableIntegrationConfig(p.t.Context(), &platformv1.DisableIntegrationConfigRequest{Id: id}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Remove deletes configs.
func (p *Platform) Remove(ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		if err := platformtest.Delete(p.t.Context(), p.Config, "integration_config", id); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Get is a config.
func (p *Platform) Get(id string) *platformv1.IntegrationConfig {
	p.t.Helper()
	answer, err := p.Client.Integrations.GetIntegrationConfig(p.t.Context(), &platformv1.GetIntegrationConfigRequest{Id: id})
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.GetIntegrationConfig()
}

// Condition is a condition of a config, nil if there is none.
func (p *Platform) Condition(id, conditionType string) *platformv1.Condition {
	p.t.Helper()
	return platform.ConditionOf(p.Get(id), conditionType)
}

// Etags are those of all configs, which change with every write.
func (p *Platform) Etags() map[string]string {
	p.t.Helper()
	etags := map[string]string{}
	p.each(func(c *platformv1.IntegrationConfig) { etags[c.GetId()] = c.GetEtag() })
	return etags
}

// Log is the texts of the log of a config, the newest first.
func (p *Platform) Log(id string) []string {
	p.t.Helper()
	answer, err := p.Client.Integrations.ListLogEntries(p.t.Context(), &platformv1.ListLogEntriesRequest{ConfigId: id})
	if err != nil {
		p.t.Fatal(err)
	}
	var texts []string
	for _, entry := range answer.GetLogEntries() {
		texts = append(texts, entry.GetMessage())
	}
	return texts
}

func (p *Platform) known() []string {
	p.t.Helper()
	var ids []string
	p.each(func(c *platformv1.IntegrationConfig) { ids = append(ids, c.GetId()) })
	return ids
}

func (p *Platform) each(visit func(*platformv1.IntegrationConfig)) {
	p.t.Helper()
	err := platform.Pages(func(token string) (string, error) {
		page, err := p.Client.Integrations.ListIntegrationConfigs(p.t.Context(), &platformv1.ListIntegrationConfigsRequest{PageToken: token})
		for _, c := range page.GetIntegrationConfigs() {
			visit(c)
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}
