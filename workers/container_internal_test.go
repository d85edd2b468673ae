package workers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only the name that Docker makes up for a container is looked up.
func TestNamesOfHostsStay(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"backend-7c9f", "0123456789AB", "0123456789abc", "cafe", "host.example.org", ""} {
		require.Equal(t, host, containerName(host))
	}
}
