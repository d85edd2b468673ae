package release2_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/release2"
)

func TestAnAnswerWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	client, err := release2.New(release2.Config{URL: server.URL, Token: "token"})
	require.NoError(t, err)
	_, err = client.Get(t.Context(), "stations", "1")
	require.ErrorIs(t, err, answers.ErrTooLarge)
}
