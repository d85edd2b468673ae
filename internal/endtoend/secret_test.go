package endtoend_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// listener is a server that notes what it is told.
type listener struct {
	mu    sync.Mutex
	heard []string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, r.Header.Get("Authorization"))
	w.WriteHeader(http.StatusUnauthorized)
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.heard...)
}

// TestASecretGoesNowhereElse has users of one organization name the secret of another, and
// a server of their own. The first organization's jobs get the secret, and none of the
// second's, nor one that names the first as its owner but sends it elsewhere.
func TestASecretGoesNowhereElse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	b := newBench(t, stacktest.StartOwn(t))
	users := newUsers(b)
	theirs, strangers := &listener{}, &listener{}
	vendor, stranger := stacktest.Serve(t, theirs), stacktest.Serve(t, strangers)
	const token = "victims-token-77"
	b.worker("extract", "DENDRA_SECRET_VENDOR=hosts: "+strings.TrimPrefix(vendor, "http://")+"\nowners: organization:victim\n\n"+token)
	b.worker("backend")
	declare(b, `
[jobs.reconcile_jobs.main]
continuous = { interval = "PT0.3S" }
spec = { window = "PT1S" }
`)
	for _, r := range readSeed(t, `"recurEvery": "60s"`, `"recurEvery": "5s"`) {
		if r.GetIntegrationType() != nil {
			require.NoError(t, users.put(t.Context(), r))
		}
	}
	victim, mallory := newOrganization(1, "victim", "ridge", "21234001"), newOrganization(2, "mallory", "creek", "21234002")
	for o, url := range map[*organization]string{victim: vendor, mallory: stranger} {
		require.NoError(t, users.put(t.Context(), o.resources(url)...))
	}
	ended := func(o *organization, class string) {
		stacktest.WaitFor(t, "a run of "+o.extractJob()+" that fails with "+class, func() (bool, error) {
			require.Empty(t, strangers.all(), "the stranger has heard a secret")
			runs, err := b.client.Runs.List(t.Context(), client.RunFilter{JobID: o.extractJob(), Status: client.RunFailed})
			return slices.ContainsFunc(runs, func(r client.Run) bool { return r.Class == class }), err
		})
	}
	ended(victim, errclass.HobolinkToken)
	ended(mallory, errclass.SecretRefused)

	detail, _ := b.run("--type", "ExtractHoboTimeFrame", "--key", "elsewhere", "--owner", "organization:victim", "--spec",
		`{"base_url": "`+stranger+`", "token": "secret://vendor", "organization": "victim", "location": "common1", "loggers": [{"serial": "21234001", "station": "Ridge"}]}`)
	require.Equal(t, errclass.SecretRefused, detail.Class)
	require.Contains(t, detail.Error, "may not go to "+strings.TrimPrefix(stranger, "http://"))
	require.Contains(t, theirs.all(), "Bearer "+token)
	require.Empty(t, strangers.all())
}
