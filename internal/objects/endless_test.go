package objects_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// A store whose objects and lists have no end.
func TestAStoreWhoseAnswersHaveNoEnd(t *testing.T) {
	t.Parallel()
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", "Fri, 06 Mar 2026 12:00:00 GMT")
		for {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	store, err := objects.New(objects.Config{Endpoint: server.URL, AccessKey: "key", SecretKey: "secret"})
	require.NoError(t, err)
	_, _, err = store.Get(t.Context(), "bucket", "key", 10)
	require.Equal(t, errclass.ObjectTooLarge, job.ClassOf(err), err)
	for _, err := range store.List(t.Context(), "bucket", "") {
		require.ErrorIs(t, err, answers.ErrTooLarge)
	}
}
