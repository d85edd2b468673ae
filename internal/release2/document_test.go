package release2_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/release2"
)

// Release 2 reads what looks like a number in a query as a number.
var number = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

func TestVersionQueriesHoldNoNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "version_id=5a8f00000000000000000001", release2.VersionQuery("5a8f00000000000000000001").Encode())
	for id, want := range map[string][2]string{
		"601234567890123456789012": {"60123456789012345678900f", "60123456789012345678901a"},
		"601234567890123456789000": {"601234567890123456788fff", "60123456789012345678900a"},
		"60e123456789012345678901": {"60e1234567890123456788ff", "60e12345678901234567890a"},
	} {
		query := release2.VersionQuery(id)
		above, below := query.Get("version_id[$gt]"), query.Get("version_id[$lt]")
		require.Equal(t, want, [2]string{above, below})
		require.True(t, above < id && id < below)
		require.NotRegexp(t, number, above)
		require.NotRegexp(t, number, below)
	}
}
