package release2_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

func TestAnAnswerWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	client, err := release2.New(release2.Config{URL: stacktest.ServeWithoutEnd(t, nil), Token: "token"})
	require.NoError(t, err)
	_, err = client.Get(t.Context(), "stations", "1")
	require.ErrorIs(t, err, answers.ErrTooLarge)
}
