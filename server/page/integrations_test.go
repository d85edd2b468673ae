package page_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestIntegrationByKeys checks, enables and disables an integration by keys alone on a phone.
func TestIntegrationByKeys(t *testing.T) {
	t.Parallel()
	p, st := reconciletest.New(t), stacktest.Start(t)
	server := api.New(api.Config{
		Client: client.New(st.Dial(t), st.Namespace), Types: types(), Platform: p.Client,
		Reads: readmodel.Config{Temporal: st.Settings(), Platform: p.Client, PlatformURL: p.URL},
	})
	t.Cleanup(server.Close)
	url := serveTo(t, server.InProcess())
	p.PutStation("5b0f155746a1b867a114e031", "ridge")
	p.PutType(&platformv1.IntegrationType{Id: "account", Name: "Account", Jobs: []*platformv1.IntegrationJob{p.Job("TakeSteps", map[string]any{"steps": 1})}})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "north", TypeId: "account"})
	p.PutType(&platformv1.IntegrationType{
		Id: "station", Name: "Station", Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_STATION,
		Variables: []*platformv1.Variable{{Name: "to", Type: platformv1.VariableType_VARIABLE_TYPE_CONFIG, Required: true}},
	})
	p.PutConfig(&platformv1.IntegrationConfig{
		Id: "north-ridge", TypeId: "station", StationId: "5b0f155746a1b867a114e031",
		Values: map[string]*platformv1.VariableValue{"to": {Value: &platformv1.VariableValue_ConfigId{ConfigId: "north"}}},
	})

	b := newTab(t, 400, 900)
	text := `document.querySelector("main").innerText`
	stacktest.WaitFor(t, "the integrations in the overview", func() (bool, error) {
		b.open(url + "/integrations")
		return is[bool](b, text+`.includes("north-ridge")`), nil
	})
	b.tabTo(`a[href="/integrations/north-ridge"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the integration", `document.querySelector("h1").textContent === "Integration north-ridge"`)
	require.Contains(t, is[string](b, text), "station ridge")
	b.tabTo(`a[href$="?check=yes#check"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("what the check found", text+`.includes("values.to: the config is not enabled")`)
	b.tabTo(`form[action="/do/enable-integration"] button`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the refusal", `document.querySelector("#message").innerText.includes("values.to: the config is not enabled")`)
	b.tabTo(`p a[href="/integrations/north"]`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("the integration that it refers to", `document.querySelector("h1").textContent === "Integration north"`)
	require.False(t, is[bool](b, `!!document.querySelector('form[action="/do/disable-integration"]')`), "it is disabled")
	b.tabTo(`form[action="/do/enable-integration"] button`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("what was done", `document.querySelector("#message").innerText.includes("Config north is enabled.")`)
	require.True(t, p.Get("north").GetEnabled())

	require.NoError(t, p.Client.WriteConditions(t.Context(), "north", platform.ConditionChange{Observed: 2, Set: []platform.Condition{
		{Type: "Ready", Reason: "NoWorker", Message: "no worker serves it"},
	}}))
	_, err := p.Client.Integrations.CreateLogEntries(t.Context(), &platformv1.CreateLogEntriesRequest{LogEntries: []*platformv1.LogEntry{{
		Id: "1", ConfigId: "north", Time: timestamppb.Now(), Level: platformv1.LogLevel_LOG_LEVEL_WARN, Message: "Look here.",
	}}})
	require.NoError(t, err)
	b.open(url + "/integrations/north")
	require.Regexp(t, `(?s)not ready.*Ready.*no.*NoWorker.*no worker serves it.*Look here\.`, is[string](b, text))
	require.Zero(t, is[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`))
	lookAt(t, url, map[string]string{"integration": "/integrations/north"})
	b.tabTo(`form[action="/do/disable-integration"] button`)
	b.do(chromedp.KeyEvent("\r"))
	b.until("what was done", `document.querySelector("#message").innerText.includes("Config north is disabled.")`)
	require.False(t, p.Get("north").GetEnabled())
	b.requireCalm()
}
