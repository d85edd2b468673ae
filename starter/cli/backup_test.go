package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// saved is a backup of the servers of a stack, as the commands of docs/backup.md make it.
type saved struct {
	folder string
	st     *stacktest.Stack
}

// takeBackup saves the servers of a stack. A dump of PostgreSQL as text is that of an empty
// database.
func takeBackup(t *testing.T, st *stacktest.Stack) saved {
	t.Helper()
	s := saved{t.TempDir(), st}
	s.write(t, "temporal/temporal.sql", "--\n-- PostgreSQL database dump\n--\n\n--\n-- PostgreSQL database dump complete\n--\n")
	client := st.Pipeline(t)
	found, err := client.Look(t.Context())
	require.NoError(t, err)
	for _, isNext := range []func(string) bool{ // The order of the page.
		func(stream string) bool { return strings.HasPrefix(stream, "KV_") },
		func(stream string) bool { return stream == pipeline.StreamRaw },
		func(stream string) bool { return stream != pipeline.StreamRaw && !strings.HasPrefix(stream, "KV_") },
	} {
		for _, stream := range found.Streams {
			if isNext(stream.Stream) {
				s.saveStream(t, client.JetStream(), stream.Stream)
			}
		}
	}
	store := objectstest.Open(t, st.S3)
	for info, err := range store.List(t.Context(), "archive", "") {
		require.NoError(t, err)
		data, _, err := store.Get(t.Context(), "archive", info.Key, 1<<20)
		require.NoError(t, err)
		s.write(t, "s3/archive/"+info.Key, string(data))
	}
	return s
}

// saveStream takes a snapshot of a stream, by the protocol of JetStream: the chunks come to a
// subject and are acknowledged there, and one without data is the last.
func (s saved) saveStream(t *testing.T, js jetstream.JetStream, stream string) {
	t.Helper()
	live, err := js.Stream(t.Context(), stream)
	require.NoError(t, err)
	conn, err := nats.Connect(s.st.NATS)
	require.NoError(t, err)
	defer conn.Close()
	inbox := conn.NewRespInbox()
	chunks, err := conn.SubscribeSync(inbox)
	require.NoError(t, err)
	answer, err := conn.RequestWithContext(t.Context(), "$JS.API.STREAM.SNAPSHOT."+stream, fmt.Appendf(nil, `{"deliver_subject":%q,"chunk_size":131072}`, inbox))
	require.NoError(t, err)
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	require.NoError(t, json.Unmarshal(answer.Data, &told))
	require.Empty(t, told.Error)
	var data []byte
	for {
		chunk, err := chunks.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		if len(chunk.Data) == 0 {
			break
		}
		data = append(data, chunk.Data...)
		if chunk.Reply != "" {
			require.NoError(t, chunk.Respond(nil))
		}
	}
	s.write(t, "nats/"+stream+"/stream.arc.s2", string(data))
	about, err := json.Marshal(map[string]any{"config": live.CachedInfo().Config, "state": live.CachedInfo().State})
	require.NoError(t, err)
	s.write(t, "nats/"+stream+"/backup.json", string(about))
}

func (s saved) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.folder, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (s saved) remove(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(s.folder, filepath.FromSlash(name))))
}

// copied is the same backup in another folder, with the times of its files.
func (s saved) copied(t *testing.T) saved {
	t.Helper()
	to := saved{filepath.Join(t.TempDir(), "copied"), s.st}
	require.NoError(t, os.CopyFS(to.folder, os.DirFS(s.folder)))
	require.NoError(t, fs.WalkDir(os.DirFS(s.folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(to.folder, path), info.ModTime(), info.ModTime())
	}))
	return to
}

// age makes a file older.
func (s saved) age(t *testing.T, name string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	require.NoError(t, os.Chtimes(filepath.Join(s.folder, filepath.FromSlash(name)), then, then))
}

func TestBackupCheck(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats,s3")
	st.Join(stacktest.Start(t))
	c := console{address: st.Temporal, namespace: st.Namespace, env: st.Variables()}
	publish(t, st)
	put(t, st, "raw/v1/one")
	whole := takeBackup(t, st)
	require.NotContains(t, fmt.Sprint(states(results(t, c, 0, "backup", "check", whole.folder))), "wrong")

	for _, damage := range []struct {
		name, part, check, found string
		do                       func(*testing.T, saved)
	}{
		{"a dump that is cut off", "temporal", "temporal.sql", "it is cut off: its last line does not say that the dump is complete",
			func(t *testing.T, s saved) {
				s.write(t, "temporal/temporal.sql", "--\n-- PostgreSQL database dump\n--\n")
			}},
		{"a file of something else", "temporal", "notes", "it is neither a dump of PostgreSQL nor a SQLite database",
			func(t *testing.T, s saved) { s.write(t, "temporal/notes", "remember") }},
		{"a SQLite database that is cut off", "temporal", "temporal.db", "it is cut off: 100 bytes of 8192",
			func(t *testing.T, s saved) {
				head := make([]byte, 100)
				copy(head, "SQLite format 3\x00\x10\x00") // Pages of 4096 bytes.
				head[31] = 2
				s.write(t, "temporal/temporal.db", string(head))
			}},
		{"an old dump", "temporal", "temporal.sql", "older than P1D", func(t *testing.T, s saved) { s.age(t, "temporal/temporal.sql", 25*time.Hour) }},
		{"a stream that did not end", "nats", "stream RAW", "is empty: the backup did not end", func(t *testing.T, s saved) { s.write(t, "nats/RAW/backup.json", "") }},
		{"a stream without data", "nats", "stream RAW", "has no data of the stream", func(t *testing.T, s saved) { s.remove(t, "nats/RAW/stream.arc.s2") }},
		{"a stream that is not there", "nats", "bucket bookmarks", "no such file or directory", func(t *testing.T, s saved) { s.remove(t, "nats/KV_bookmarks") }},
		{"another stream", "nats", "stream RAW", `is of stream "PREPARED"`, func(t *testing.T, s saved) {
			text, err := os.ReadFile(filepath.Join(s.folder, "nats", "PREPARED", "backup.json"))
			require.NoError(t, err)
			s.write(t, "nats/RAW/backup.json", string(text))
		}},
		{"a stream of another server", "nats", "stream RAW", "the backup has messages up to 9, and NATS up to 1: it is of another stream",
			func(t *testing.T, s saved) {
				s.write(t, "nats/RAW/backup.json", `{"config":{"name":"RAW"},"state":{"last_seq":9}}`)
			}},
		{"the wrong order", "all", "order", "stream RAW was saved at", func(t *testing.T, s saved) { s.age(t, "nats/RAW/stream.arc.s2", time.Hour) }},
		{"an object that is missing", "s3", "bucket archive", "1 of 1 objects are missing or of another size", func(t *testing.T, s saved) { s.remove(t, "s3/archive/raw") }},
		{"a bucket that is missing", "s3", "bucket archive", "no such file or directory", func(t *testing.T, s saved) { s.remove(t, "s3") }},
	} {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()
			s := whole.copied(t)
			damage.do(t, s)
			r := find(t, results(t, c, 2, "backup", "check", s.folder), damage.part, damage.check)
			require.Equal(t, servers.StateWrong, r.State)
			require.Contains(t, r.Found, damage.found)
			require.NotEmpty(t, r.Cure)
		})
	}
}

// publish puts a message into the raw stream.
func publish(t *testing.T, st *stacktest.Stack) {
	t.Helper()
	client := st.Pipeline(t)
	_, err := client.Look(t.Context())
	require.NoError(t, err)
	_, err = client.JetStream().Publish(t.Context(), "dendra.raw.v1.live.org.csi", []byte(`{}`))
	require.NoError(t, err)
}

func put(t *testing.T, st *stacktest.Stack, key string) {
	t.Helper()
	_, err := objectstest.Open(t, st.S3).Put(context.WithoutCancel(t.Context()), objects.Object{Bucket: "archive", Key: key, Data: []byte("content")})
	require.NoError(t, err)
}
