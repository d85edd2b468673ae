package cli_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestReceiversOfAFile sends a message to each, and tells which have taken it.
func TestReceiversOfAFile(t *testing.T) {
	t.Parallel()
	site := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuses" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	webhook := func(name string) string {
		return fmt.Sprintf("[receivers.%s]\ntype = \"webhook\"\nurl = \"%s/%s\"\nsecret = \"secret://hook\"\nowners = [\"user:ann\"]\n", name, site, name)
	}
	c := console{env: map[string]string{"DENDRA_SECRET_HOOK": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	file := writeFile(t, "watchdog.toml", webhook("takes"))
	require.Regexp(t, `takes +taken\n`, c.ok(t, "alerts", "test", file))

	r := c.run(t.Context(), "alerts", "test", writeFile(t, "watchdog.toml", webhook("takes")+webhook("refuses")), "-o", "json")
	require.Equal(t, 1, r.code)
	require.JSONEq(t, fmt.Sprintf(`[{"receiver": "refuses", "error": "POST to %s: HTTP status 403"}, {"receiver": "takes"}]`, site[len("http://"):]), r.stdout)
	require.Equal(t, "starter: 1 of 2 receivers took no message\n", r.stderr)

	r = c.run(t.Context(), "alerts", "test", writeFile(t, "watchdog.toml", "[receivers.a]\ntype = \"pager\"\n"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `receivers.a.type: "pager" is not one of log, webhook, email`)
}
