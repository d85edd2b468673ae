package objects_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
)

func TestBucketsAreMadeOnce(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	for _, want := range []bool{true, false} {
		found, err := store.HasBucket(t.Context(), "made-once")
		require.NoError(t, err)
		require.Equal(t, !want, found)
		made, err := store.MakeBucket(t.Context(), "made-once")
		require.NoError(t, err)
		require.Equal(t, want, made)
	}
	_, err := store.MakeBucket(t.Context(), "No Bucket")
	require.Error(t, err)
}

// A store that ignores If-None-Match is told from one that obeys it.
func TestConditionalWrites(t *testing.T) {
	t.Parallel()
	store, config := open(t)
	_, err := store.MakeBucket(t.Context(), "conditional")
	require.NoError(t, err)
	obeys, err := store.Conditional(t.Context(), "conditional")
	require.NoError(t, err)
	require.True(t, obeys)
	for info, err := range store.List(t.Context(), "conditional", "") {
		require.NoError(t, err)
		require.Fail(t, "an object was left", info.Key)
	}

	proxy := objectstest.NewProxy(t, config.Endpoint)
	proxy.Before(func(w http.ResponseWriter, r *http.Request) bool {
		ignores := r.Method == http.MethodPut && r.Header.Get("If-None-Match") == "*"
		if ignores {
			w.Header().Set("ETag", `"any"`)
		}
		return ignores
	})
	config.Endpoint = proxy.URL
	ignoring, err := objects.New(config)
	require.NoError(t, err)
	obeys, err = ignoring.Conditional(t.Context(), "conditional")
	require.NoError(t, err)
	require.False(t, obeys)
}

// A policy is set once, however it is written.
func TestPolicies(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	_, err := store.MakeBucket(t.Context(), "with-policy")
	require.NoError(t, err)
	policy := func(action string) string {
		return `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": ["s3:` + action + `"],
			"Resource": "arn:aws:s3:::with-policy/*"}]}`
	}
	for n, want := range []bool{true, false} {
		made, err := store.SetPolicy(t.Context(), "with-policy", policy("GetObject")+strings.Repeat("\n", n))
		require.NoError(t, err)
		require.Equal(t, want, made)
	}
	made, err := store.SetPolicy(t.Context(), "with-policy", policy("PutObject"))
	require.NoError(t, err)
	require.True(t, made)
	_, err = store.SetPolicy(t.Context(), "with-policy", `{}`)
	require.Error(t, err)
}
