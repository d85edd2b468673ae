package page_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec/payloadcodectest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/audit"
)

// TestWebUIDecrypts sets the server as the codec server of Temporal's Web UI, as
// docs/servers.md says, and reads an encrypted spec there.
func TestWebUIDecrypts(t *testing.T) {
	t.Parallel()
	const canary = "a-spec-that-is-encrypted"
	st := stacktest.StartNamespace(t)
	b := newTab(t, 1280, 900)
	settings := st.Settings()
	settings.PayloadKeys = payloadcodectest.File(t, "one")
	temporal, err := temporalclient.Dial(t.Context(), settings)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	c := client.New(temporal, st.Namespace)
	j := job.Job{
		ID: "take_steps.secret", Type: "TakeSteps", Worker: "pagetest", Provider: job.ProviderAPI, Options: job.DefaultOptions(job.ModeOneShot),
		Trigger: job.Trigger{OneShot: &job.OneShot{}}, Spec: job.EncodeJSON(map[string]any{"steps": 1, "needs": canary}),
	}
	run, err := c.Runs.Start(t.Context(), j, contract.StartedByHand)
	require.NoError(t, err)

	keys, err := payloadcodec.Read(settings.PayloadKeys)
	require.NoError(t, err)
	codec := serve(t, server.Config{
		API: api.Config{Client: c, Types: types()}, Audit: audit.New(io.Discard, slog.New(slog.DiscardHandler)),
		AllowOrigins: []string{st.WebUI}, PayloadKeys: keys,
	})

	const shows = "document.body.textContent.includes(%q)"
	history := fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history", st.WebUI, st.Namespace, url.PathEscape(run.WorkflowID), run.RunID)
	b.do(chromedp.Navigate(history))
	b.until("the run", fmt.Sprintf(shows, "Results will appear upon completion"))
	require.False(t, is[bool](b, fmt.Sprintf(shows, canary)))
	b.click(`[data-testid="data-encoder-status"]`)
	b.click("#use-local-endpoint-radio")
	b.do(chromedp.SendKeys("#data-encoder-endpoint-input", codec))
	b.click(`#data-encoder-settings [data-testid="confirm-modal-button"]`)
	b.until("the Web UI to have the codec server", `document.querySelector('[data-testid="data-encoder-status-configured"]')`)
	b.do(chromedp.Navigate(history)) // It decrypts what it loads from now on.
	b.until("the decrypted spec", fmt.Sprintf(shows, canary))
}
