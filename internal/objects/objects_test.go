package objects_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func open(t *testing.T) (*objects.Store, objects.Config) {
	t.Helper()
	s3 := stacktest.Start(t).S3
	config := objectstest.Config(s3)
	store, err := objects.New(config)
	require.NoError(t, err)
	return store, config
}

func TestConfigFromEnvListsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := objects.ConfigFromEnv(func(string) string { return "" })
	for _, name := range []string{"DENDRA_S3_ENDPOINT", "DENDRA_S3_ACCESS_KEY", "DENDRA_S3_SECRET_KEY"} {
		require.ErrorContains(t, err, name)
	}
	variables := map[string]string{
		"DENDRA_S3_ENDPOINT": "https://store.example:9000/", "DENDRA_S3_ACCESS_KEY": "a", "DENDRA_S3_SECRET_KEY": "b",
	}
	config, err := objects.ConfigFromEnv(func(name string) string { return variables[name] })
	require.NoError(t, err)
	require.Equal(t, objects.Config{Endpoint: "https://store.example:9000/", AccessKey: "a", SecretKey: "b"}, config)
	_, err = objects.New(config)
	require.NoError(t, err)

	for _, endpoint := range []string{"127.0.0.1:9000", "ftp://127.0.0.1", "http://", "http://127.0.0.1/path", "http://user:hidden@127.0.0.1"} {
		variables["DENDRA_S3_ENDPOINT"] = endpoint
		_, err = objects.ConfigFromEnv(func(name string) string { return variables[name] })
		require.ErrorContains(t, err, "DENDRA_S3_ENDPOINT", endpoint)
		require.NotContains(t, err.Error(), "hidden")
	}
}

func TestPutNewAndGet(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	ctx := t.Context()
	object := objects.Object{
		Bucket: "media", Key: "put-new/a b+ü.txt", Data: []byte("content"), ContentType: "text/plain",
		CacheControl: "public, max-age=31536000, immutable", Metadata: map[string]string{"Kind": "test"},
	}
	info, written, err := store.PutNew(ctx, object)
	require.NoError(t, err)
	require.True(t, written)
	require.Equal(t, objects.Hash(object.Data), info.SHA256)

	again, written, err := store.PutNew(ctx, object)
	require.NoError(t, err)
	require.False(t, written)
	require.Equal(t, info.ETag, again.ETag)
	require.Equal(t, object.CacheControl, again.CacheControl)
	require.Equal(t, object.ContentType, again.ContentType)
	require.Equal(t, map[string]string{"kind": "test"}, again.Metadata)

	data, got, err := store.Get(ctx, object.Bucket, object.Key, 7)
	require.NoError(t, err)
	require.Equal(t, object.Data, data)
	require.Equal(t, again, got)

	_, _, err = store.Get(ctx, object.Bucket, object.Key, 6)
	jobtest.RequireFailure(t, err, errclass.ObjectTooLarge, true, "media/put-new/", "7 bytes", "limit of 6")

	other := object
	other.Data = []byte("CONTENT")
	_, _, err = store.PutNew(ctx, other)
	jobtest.RequireFailure(t, err, errclass.Conflict, true, "media/put-new/", "already there")
	var conflict *objects.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, info.ETag, conflict.Existing.ETag)

	info, err = store.Put(ctx, other)
	require.NoError(t, err)
	stat, err := store.Stat(ctx, object.Bucket, object.Key)
	require.NoError(t, err)
	require.Equal(t, objects.Hash(other.Data), stat.SHA256)
	require.Equal(t, info.ETag, stat.ETag)
}

// An object of the same size that claims to have the content's hash is told from it.
func TestAClaimedHashIsNotBelieved(t *testing.T) {
	t.Parallel()
	store, config := open(t)
	mine := objects.Object{Bucket: "media", Key: "claimed", Data: []byte("content"), ContentType: "text/plain"}
	stranger, err := minio.New(strings.TrimPrefix(config.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(config.AccessKey, config.SecretKey, ""),
	})
	require.NoError(t, err)
	_, err = stranger.PutObject(t.Context(), mine.Bucket, mine.Key, strings.NewReader("CONTENT"), 7,
		minio.PutObjectOptions{UserMetadata: map[string]string{"sha256": objects.Hash(mine.Data)}})
	require.NoError(t, err)
	_, _, err = store.PutNew(t.Context(), mine)
	jobtest.RequireFailure(t, err, errclass.Conflict, true, "media/claimed", "already there")
}

// Of many that write the same key at once one writes it, and the others see it.
func TestPutNewByManyAtOnce(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	var wait sync.WaitGroup
	wrote := make([]bool, 16)
	errs := make([]error, len(wrote))
	for i := range wrote {
		wait.Go(func() {
			_, wrote[i], errs[i] = store.PutNew(t.Context(), objects.Object{
				Bucket: "media", Key: "race/one", Data: []byte(strings.Repeat("x", 100_000)), ContentType: "text/plain",
			})
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	writers := 0
	for _, w := range wrote {
		if w {
			writers++
		}
	}
	require.Equal(t, 1, writers)
}

func TestEmptyObject(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	_, _, err := store.PutNew(t.Context(), objects.Object{Bucket: "media", Key: "empty", ContentType: "text/plain"})
	require.NoError(t, err)
	data, info, err := store.Get(t.Context(), "media", "empty", 10)
	require.NoError(t, err)
	require.Empty(t, data)
	require.Zero(t, info.Size)
}

// A store that reads nothing of an empty object takes what is sent nevertheless
// for the next request of the connection.
func TestEmptyObjectHasNoBody(t *testing.T) {
	t.Parallel()
	var lengths []int64
	server := stacktest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		lengths = append(lengths, r.ContentLength)
	}))
	store, err := objects.New(objects.Config{AccessKey: "a", Endpoint: server, SecretKey: "s"})
	require.NoError(t, err)
	_, err = store.Put(t.Context(), objects.Object{Bucket: "media", Key: "empty", ContentType: "text/plain"})
	require.NoError(t, err)
	require.Equal(t, []int64{0}, lengths)
}

func TestList(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	for _, key := range []string{"list/b/1", "list/a", "list/b/2", "listed"} {
		_, _, err := store.PutNew(t.Context(), objects.Object{Bucket: "media", Key: key, Data: []byte(key), ContentType: "text/plain"})
		require.NoError(t, err)
	}
	var keys []string
	for info, err := range store.List(t.Context(), "media", "list/") {
		require.NoError(t, err)
		require.Equal(t, int64(len(info.Key)), info.Size)
		keys = append(keys, info.Key)
	}
	require.Equal(t, []string{"list/a", "list/b/1", "list/b/2"}, keys)
	keys = nil
	for info, err := range store.ListAfter(t.Context(), "media", "list/", "list/b/1") {
		require.NoError(t, err)
		keys = append(keys, info.Key)
	}
	require.Equal(t, []string{"list/b/2"}, keys)
	for _, err := range store.List(t.Context(), "no-such-bucket", "") {
		jobtest.RequireFailure(t, err, errclass.BucketMissing, true, "no-such-bucket")
	}
}

func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	store, config := open(t)
	ctx := t.Context()
	address := strings.TrimPrefix(config.Endpoint, "http://")
	_, _, err := store.Get(ctx, "no-such-bucket", "key", 10)
	jobtest.RequireFailure(t, err, errclass.BucketMissing, true, `bucket "no-such-bucket" does not exist on `+address)
	_, err = store.Stat(ctx, "no-such-bucket", "key")
	jobtest.RequireFailure(t, err, errclass.BucketMissing, true, "no-such-bucket", address)
	_, _, err = store.PutNew(ctx, objects.Object{Bucket: "no-such-bucket", Key: "key", Data: []byte("x")})
	jobtest.RequireFailure(t, err, errclass.BucketMissing, true, "no-such-bucket", address)

	_, _, err = store.Get(ctx, "media", "no/such/key", 10)
	jobtest.RequireFailure(t, err, errclass.ObjectMissing, false, "media/no/such/key", address)
	_, err = store.Stat(ctx, "media", "no/such/key")
	jobtest.RequireFailure(t, err, errclass.ObjectMissing, false, "media/no/such/key", address)

	_, err = store.Stat(ctx, "Not_A_Bucket!", "key")
	jobtest.RequireFailure(t, err, errclass.InvalidName, true, "Not_A_Bucket!")
}

// Names that no retry makes acceptable.
func TestNamesThatNoStoreTakes(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	for _, key := range []string{"", "..", "a/../b", "../b", "a/.."} {
		_, err := store.Put(t.Context(), objects.Object{Bucket: "media", Key: key, Data: []byte("x"), ContentType: "text/plain"})
		jobtest.RequireFailure(t, err, errclass.InvalidName, true, "media")
		_, _, err = store.PutNew(t.Context(), objects.Object{Bucket: "media", Key: key, Data: []byte("x"), ContentType: "text/plain"})
		jobtest.RequireFailure(t, err, errclass.InvalidName, true, "media")
		_, _, err = store.Get(t.Context(), "media", key, 10)
		jobtest.RequireFailure(t, err, errclass.InvalidName, true, "media")
		_, err = store.Stat(t.Context(), "media", key)
		jobtest.RequireFailure(t, err, errclass.InvalidName, true, "media")
	}
	// A store over a file system has no object that others are below.
	_, err := store.Put(t.Context(), objects.Object{Bucket: "media", Key: "names/folder/one", Data: []byte("x"), ContentType: "text/plain"})
	require.NoError(t, err)
	for _, key := range []string{"names/folder", "names/folder/one/more"} {
		_, err = store.Put(t.Context(), objects.Object{Bucket: "media", Key: key, Data: []byte("x"), ContentType: "text/plain"})
		jobtest.RequireFailure(t, err, errclass.InvalidName, true, "media/"+key)
	}
}

func TestAccessDenied(t *testing.T) {
	t.Parallel()
	_, config := open(t)
	config.SecretKey = "wrong-secret-key"
	store, err := objects.New(config)
	require.NoError(t, err)
	_, _, err = store.Get(t.Context(), "media", "key", 10)
	jobtest.RequireFailure(t, err, errclass.AccessDenied, true, strings.TrimPrefix(config.Endpoint, "http://"))
	require.NotContains(t, err.Error(), "wrong-secret-key")
}

func TestDeadStore(t *testing.T) {
	t.Parallel()
	address := "127.0.0.1:" + stacktest.FreePort(t)
	store, err := objects.New(objects.Config{AccessKey: "a", Endpoint: "http://" + address, SecretKey: "b"})
	require.NoError(t, err)
	_, _, err = store.Get(t.Context(), "media", "key", 10)
	jobtest.RequireFailure(t, err, errclass.StoreUnreachable, false, address, "cannot be reached for bucket ")
	_, _, err = store.PutNew(t.Context(), objects.Object{Bucket: "media", Key: "key", Data: []byte("x")})
	jobtest.RequireFailure(t, err, errclass.StoreUnreachable, false, address, "cannot be reached for bucket ")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = store.Get(ctx, "media", "key", 10)
	require.ErrorIs(t, err, context.Canceled)
}

// A store that breaks off in the middle of an object, or fails, is worth
// another attempt.
func TestFailingStore(t *testing.T) {
	t.Parallel()
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/broken") {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 15:04:05 GMT")
			_, _ = w.Write([]byte("the first part"))
			return
		}
		http.Error(w, "<Error><Code>SlowDown</Code><Message>later</Message></Error>", http.StatusServiceUnavailable)
	}))
	store, err := objects.New(objects.Config{AccessKey: "a", Endpoint: server, SecretKey: "b"})
	require.NoError(t, err)
	_, _, err = store.Get(t.Context(), "media", "broken", 10_000)
	jobtest.RequireFailure(t, err, errclass.StoreUnreachable, false, "unexpected EOF")
	_, _, err = store.Get(t.Context(), "media", "busy", 10_000)
	jobtest.RequireFailure(t, err, errclass.StoreError, false, "SlowDown", "media/busy")
}

// A store that answers in chunks does not tell the size.
func TestStoreThatDoesNotTellSizes(t *testing.T) {
	t.Parallel()
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 15:04:05 GMT")
		_, _ = w.Write([]byte("con"))
		_ = http.NewResponseController(w).Flush()
		if strings.HasSuffix(r.URL.Path, "/broken") {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte("tent"))
		for strings.HasSuffix(r.URL.Path, "/endless") {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	}))
	store, err := objects.New(objects.Config{AccessKey: "a", Endpoint: server, SecretKey: "b"})
	require.NoError(t, err)

	data, info, err := store.Get(t.Context(), "media", "key", 7)
	require.NoError(t, err)
	require.Equal(t, "content", string(data))
	require.EqualValues(t, 7, info.Size)
	_, _, err = store.Get(t.Context(), "media", "key", 6)
	jobtest.RequireFailure(t, err, errclass.ObjectTooLarge, true, "object media/key has more than the limit of 6 bytes")
	_, _, err = store.Get(t.Context(), "media", "endless", 100_000)
	jobtest.RequireFailure(t, err, errclass.ObjectTooLarge, true, "object media/endless", "limit of 100000 bytes")
	_, _, err = store.Get(t.Context(), "media", "broken", 100)
	jobtest.RequireFailure(t, err, errclass.StoreUnreachable, false, "unexpected EOF")

	_, err = store.Stat(t.Context(), "media", "key")
	jobtest.RequireFailure(t, err, errclass.StoreError, false, "does not tell the size of media/key")
}
