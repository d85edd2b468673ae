package main_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// commands are those that read a jobs file. Nobody listens at the address: what
// is wrong with a file is told before anyone is asked.
func commands(path string) map[string][]string {
	nobody := []string{"--address", "127.0.0.1:1"}
	return map[string][]string{
		"validate": {"validate", path},
		"plan":     append([]string{"plan", "-f", path, "--prune"}, nobody...),
		"apply":    append([]string{"apply", "-f", path, "--yes", "--prune", "--allow-empty"}, nobody...),
	}
}

func execute(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	program := cli.Program{Types: activities.Types(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err, Patience: time.Hour}
	code = program.Execute(ctx, args)
	return code, out.String(), err.String()
}

// TestBadInput has everything wrong in one file, and reads all of it at once.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const file = "testdata/bad-input.toml"
	for name, args := range commands(file) {
		code, stdout, stderr := execute(t.Context(), args...)
		require.Equal(t, 1, code, name)
		require.Empty(t, stdout, name)
		require.NotContains(t, stderr, "hunter2", "a secret that stands where its name belongs is not repeated")
		require.Equal(t, strings.ReplaceAll(`FILE:3:15: run_timeout: duration "-PT1S" is negative
FILE:15:1: unknown option "recuring"; did you mean "recurring"?
FILE:19:38: unknown key "every"
FILE:23:29: recurring.recur_every: "P1M" counts years or months, which have no fixed length: write days or weeks, as in P30D
FILE:27:29: recurring.recur_every: "PT0S" is shorter than PT1S
FILE:32:21: heartbeat_timeout: a duration of -5 seconds is negative
FILE:36:22: recurring.cron: "61 * * * *": minute "61": 61 is not from 0 to 59
FILE:36:48: recurring.time_zone: "Mars/Olympus" is not the name of a time zone, such as Europe/Prague or UTC
FILE:39:1: job extract_hobo_time_frame.minute-61 is already defined in line 35
FILE:43:1: spec: key "token" is missing
FILE:48:14: spec.token: a secret is named, never written: secret://NAME
FILE:52:14: spec.token: a secret is named, never written: secret://NAME
FILE:56:14: spec.token: a secret is named, never written: secret://NAME
FILE:60:81: spec.password: a secret is named, never written: secret://NAME
starter: FILE has 14 problems
`, "FILE", file), stderr, name)
	}
}

// TestBadFiles reads files that are no jobs files at all, and shows nothing of
// what they hold.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	const canary = "hunter2"
	shadow := []byte("root:$6$" + canary + "$" + canary + ":19000:0:99999:7:::\n")
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "shadow")
	require.NoError(t, os.WriteFile(outside, shadow, 0o600))
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	write("shadow", shadow)
	write("env", []byte("PASSWORD="+canary+"\n"))
	write("other.toml", []byte(canary+" = \""+canary+"\"\n"))
	write("large.toml", bytes.Repeat([]byte("# "+canary+"\n"), 5<<20/10))
	write("utf-16.toml", []byte("\xff\xfe["+strings.Join(strings.Split(canary, ""), "\x00")+"\x00"))
	write("bare-utf-16.toml", []byte("[\x00j\x00o\x00b\x00s\x00]\x00"))
	write("latin-1.toml", []byte("# "+canary+" in Z\xfcrich\n"))
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "link.toml")))
	require.NoError(t, os.Symlink("/etc/shadow", filepath.Join(folder, "etc.toml")))
	require.NoError(t, os.Symlink("shadow", filepath.Join(folder, "inside.toml")))
	require.NoError(t, os.Symlink(folder, filepath.Join(folder, "folder.toml")))

	for name, want := range map[string]string{
		"shadow":           `FILE:1:5: not TOML: a key is followed by = and its value`,
		"env":              `FILE:1:10: not TOML: a value is expected here, and texts have quotes`,
		"other.toml":       `FILE:1:1: not a jobs file: it has no table [jobs.TYPE.KEY]`,
		"large.toml":       `FILE:1:1: the file is larger than 1 MiB`,
		"utf-16.toml":      `FILE:1:1: the file is in UTF-16: save it as UTF-8`,
		"bare-utf-16.toml": `FILE:1:1: the file is in UTF-16 or is not text: save it as UTF-8`,
		"latin-1.toml":     `FILE:1:15: byte 0xFC is not UTF-8`,
		"inside.toml":      `FILE:1:5: not TOML: a key is followed by = and its value`,
		"link.toml":        `starter: jobs file FILE cannot be read: it is a link to a file outside its folder, and only links within it are followed; name the file itself`,
		"etc.toml":         `starter: jobs file FILE cannot be read: it is a link to a file outside its folder, and only links within it are followed; name the file itself`,
		"folder.toml":      `starter: jobs file FILE cannot be read: it is a link to a file outside its folder, and only links within it are followed; name the file itself`,
		".":                `starter: jobs file FILE is not a regular file`,
		"none.toml":        `starter: jobs file FILE cannot be read: no such file or directory`,
	} {
		path := filepath.Join(folder, name)
		want = strings.ReplaceAll(want, "FILE", path) + "\n"
		if !strings.HasPrefix(want, "starter: ") {
			want += "starter: " + path + " has 1 problem\n"
		}
		for command, args := range commands(path) {
			code, stdout, stderr := execute(t.Context(), args...)
			require.Equal(t, 1, code, "%s %s", command, name)
			require.Empty(t, stdout, "%s %s", command, name)
			require.Equal(t, want, stderr, "%s %s", command, name)
			require.NotContains(t, stderr, canary)
		}
	}
}

// TestUnreachable has servers that are not there, or not what they should be.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	file := declaredJobs{recurring: 2}.file(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) }) // Nobody accepts; the system does.

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	balancer, err := net.Listen("tcp", "127.0.0.1:0") // Nobody is behind it.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, balancer.Close()) })
	go func() {
		for conn, err := balancer.Accept(); err == nil; conn, err = balancer.Accept() {
			_ = conn.Close()
		}
	}()
	web := stacktest.Serve(t, http.NotFoundHandler())
	host := func(url string) string { _, host, _ := strings.Cut(url, "//"); return host }

	const broken = "it breaks connections off before it answers: the servers behind it are away, or it wants TLS"
	every := [][]string{{"plan", "-f", file}, {"apply", "-f", file, "--yes"}, {"drift"}}
	for address, c := range map[string]struct {
		want     string
		commands [][]string
	}{
		host(secure.URL):         {broken, every[:1]},
		host(web):                {"it does not speak gRPC; does it want TLS?", every[1:2]},
		balancer.Addr().String(): {broken, every},
		silent.Addr().String():   {"no answer in time", every[1:2]},
		"127.0.0.1:1":            {"dial tcp 127.0.0.1:1: connect: connection refused", every},
		"not an address":         {"no server is known by that address", every},
	} {
		for _, command := range c.commands {
			t.Run(address+" "+command[0], func(t *testing.T) {
				t.Parallel()
				code, stdout, stderr := execute(t.Context(), append(command, "--address", address)...)
				require.Equal(t, 1, code)
				require.Empty(t, stdout)
				require.Equal(t, fmt.Sprintf("starter: temporal at %s cannot be reached; is it running there? (%s)\n", address, c.want), stderr)
			})
		}
	}
}
