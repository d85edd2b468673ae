package page_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// getPlain reads an address as a browser without scripts does.
func getPlain(t *testing.T, url string) []byte {
	t.Helper()
	body := get(t, url)
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body // It was too short to compress.
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	return text
}

// What was confirmed is what was seen: if the selection has changed, the server asks again.
func TestABulkActionOnOtherJobsThanSeenAsksAgain(t *testing.T) {
	t.Parallel()
	d := tell(t, 20)
	post := func(values url.Values) string { return posts(t, d.url+"/bulk", values) }
	seen := post(url.Values{"verb": {"pause-job"}, "status": {"failing"}})
	require.Contains(t, seen, `"text":"Pause 4 jobs?"`)
	mark := regexp.MustCompile(`"chosen","Value":"([^"]+)"`).FindStringSubmatch(seen)
	require.Len(t, mark, 2)
	d.change(0, func(j *jobsv1.JobOverview) { j.Status = jobsv1.JobStatus_JOB_STATUS_FAILING })
	again := post(url.Values{"verb": {"pause-job"}, "status": {"failing"}, "confirmed": {"yes"}, "chosen": {mark[1]}})
	require.Contains(t, again, `"text":"Meanwhile these are other jobs. Pause 5 jobs?"`)
	require.Contains(t, post(url.Values{"verb": {"pause-job"}, "q": {"no such job"}}), "None of the jobs that are shown")
}

// Browsers run no script but the page's, and show it in no frame of another.
func TestDocumentsForbidForeignContent(t *testing.T) {
	t.Parallel()
	d := tell(t, 1)
	d.change(0, func(j *jobsv1.JobOverview) { j.Owner = `"><script>alert(1)</script>` })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	policy := response.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'; script-src 'self';")
	require.Contains(t, policy, "frame-ancestors 'none'")
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NotContains(t, string(text), "<script>alert")
	require.NotRegexp(t, `(src|href)="https?:`, string(text))
}
