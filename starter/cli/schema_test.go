package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	schema, err := jobsfile.Schema(testTypes())
	require.NoError(t, err)
	require.JSONEq(t, string(schema), console{}.ok(t, "schema"))

	reference, err := jobsfile.Reference(testTypes())
	require.NoError(t, err)
	require.Equal(t, string(reference), console{}.ok(t, "schema", "--markdown"))

	r := console{}.run(t.Context(), "schema", "x")
	require.Equal(t, "starter: unexpected argument \"x\" (see starter schema --help)\n", r.stderr)
}
