package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortsAreChecked(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--temporal-port=99999": "--temporal-port 99999 is not a port: it is from 0, for a free one, to 65535",
		"--s3-port=-1":          "--s3-port -1 is not a port: it is from 0, for a free one, to 65535",
	} {
		_, err := parseFlags([]string{"--ephemeral", arg}, io.Discard)
		require.EqualError(t, err, want)
	}
	o, err := parseFlags([]string{"--ephemeral", "--temporal-port=65535"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 65535, o.temporalPort)
}
