package objects_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestReader reads an object from any place, until it is written anew.
func TestReader(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	r := stacktest.Random(t)
	content := make([]byte, 100_000)
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	object := objects.Object{Bucket: "uploads", Key: "reader/a.dat", Data: content, ContentType: "text/plain"}
	info, err := store.Put(t.Context(), object)
	require.NoError(t, err)
	_, err = store.Open(t.Context(), object.Bucket, object.Key, "another")
	jobtest.RequireFailure(t, err, errclass.ObjectChanged, true, "uploads/reader/a.dat", "another")

	reader, err := store.Open(t.Context(), object.Bucket, object.Key, info.ETag)
	require.NoError(t, err)
	all, err := io.ReadAll(io.NewSectionReader(reader, 0, reader.Info().Size))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, all))
	for range 20 {
		from := r.IntN(len(content))
		part := make([]byte, 1+r.IntN(5000))
		n, err := reader.ReadAt(part, int64(from))
		require.Equal(t, min(len(part), len(content)-from), n)
		require.True(t, bytes.Equal(content[from:from+n], part[:n]))
		if n < len(part) {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.NoError(t, err)
		}
	}
	_, err = reader.ReadAt(make([]byte, 1), int64(len(content)))
	require.ErrorIs(t, err, io.EOF)

	object.Data = append([]byte("x"), content...)
	_, err = store.Put(t.Context(), object)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	_, err = reader.ReadAt(make([]byte, 10), 0)
	jobtest.RequireFailure(t, err, errclass.ObjectChanged, true, "uploads/reader/a.dat", info.ETag)
}
