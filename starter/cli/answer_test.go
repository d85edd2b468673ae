package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// answered runs a command line with -o json and reads the message of the Job API that it
// gives.
func answered[M any, P interface {
	*M
	proto.Message
}](t *testing.T, c console, args ...string) P {
	t.Helper()
	var message P = new(M)
	require.NoError(t, protojson.Unmarshal([]byte(c.ok(t, append(args, "-o", "json")...)), message))
	return message
}
