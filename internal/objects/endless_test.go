package objects_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// A store whose objects and lists have no end.
func TestAStoreWhoseAnswersHaveNoEnd(t *testing.T) {
	t.Parallel()
	url := stacktest.ServeWithoutEnd(t, http.Header{"Etag": {`"1"`}, "Last-Modified": {"Fri, 06 Mar 2026 12:00:00 GMT"}})
	store, err := objects.New(objects.Config{Endpoint: url, AccessKey: "key", SecretKey: "secret"})
	require.NoError(t, err)
	_, _, err = store.Get(t.Context(), "bucket", "key", 10)
	require.Equal(t, errclass.ObjectTooLarge, job.ClassOf(err), err)
	for _, err := range store.List(t.Context(), "bucket", "") {
		require.ErrorIs(t, err, answers.ErrTooLarge)
	}
}
