package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestEntriesWhileAKeyIsWritten: a key that is always there is in each read, whatever is
// written meanwhile.
func TestEntriesWhileAKeyIsWritten(t *testing.T) {
	t.Parallel()
	client := connect(t, stacktest.StartOwn(t, "--only", "nats").NATS)
	const bucket, keys, reads = "BUSY", 5, 300
	kv, err := client.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket})
	require.NoError(t, err)
	put := func(key string) {
		_, err := kv.Put(t.Context(), key, []byte(key))
		require.NoError(t, err)
	}
	for i := range keys {
		put(fmt.Sprintf("kept.%d", i))
	}
	put("gone.0")
	require.NoError(t, kv.Delete(t.Context(), "gone.0"))

	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := kv.Put(t.Context(), "kept.0", []byte("again")); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for _, pattern := range []string{">", "kept.>"} {
		for range reads {
			found := map[string]int{}
			for entry, err := range client.Entries(t.Context(), bucket, pattern) {
				require.NoError(t, err)
				found[entry.Key()]++
			}
			require.Len(t, found, keys)
			require.Equal(t, 1, found["kept.0"])
		}
	}
	close(stop)
	require.NoError(t, <-stopped)
	for entry, err := range client.Entries(t.Context(), bucket, "none.>") {
		require.Fail(t, "there is none", "%v %v", entry, err)
	}
}
