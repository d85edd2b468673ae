package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The terminal gets warnings and errors of a program; its file gets everything.
func TestProgramLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var shown bytes.Buffer
	logs, err := newLogs(dir, newTerminal(&shown))
	require.NoError(t, err)
	log, err := logs.open("status page")
	require.NoError(t, err)
	for _, text := range []string{
		"time=1 level=INFO msg=one\ntime=2 level=WA", "RN msg=two\r\n", "{\"time\":3,\"level\":\"ERROR\",\"msg\":\"three\"}\n",
		"{\"level\":\"INFO\",\"msg\":\"four\"}\nlevel=DEBUG\npanic: five\nsix",
	} {
		written, err := log.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), written)
	}
	require.Equal(t, "status page | time=2 level=WARN msg=two\n"+
		"status page | {\"time\":3,\"level\":\"ERROR\",\"msg\":\"three\"}\nstatus page | panic: five\n", shown.String())
	log.close()
	require.Equal(t, "six", log.last[len(log.last)-1], "a program need not end its last line")

	// What became of the jobs file is shown, and told.
	var told []bool
	shown.Reset()
	logs.jobsFile = func(applied bool) { told = append(told, applied) }
	page, err := logs.open("page")
	require.NoError(t, err)
	const in, out = `level=INFO msg="Temporal is in line with the jobs file" jobs=1`, `level=WARN msg="Temporal is not in line with the jobs file: it is tried again"`
	_, err = page.Write([]byte(out + "\n" + in + "\n"))
	require.NoError(t, err)
	page.close()
	require.Equal(t, []bool{false, true}, told)
	require.Equal(t, "page        | "+out+"\npage        | "+in+"\n", shown.String())

	// Another run goes on with the file, and shows its own lines alone.
	path := filepath.Join(dir, "logs", "status-page.log")
	log, err = logs.open("status page")
	require.NoError(t, err)
	shown.Reset()
	log.showEnd("it ended")
	require.Equal(t, "dev         | it ended; it said nothing\n", shown.String())
	log.hold()
	for n := range 12 {
		_, err := fmt.Fprintf(log, "level=WARN line=%d\n", n)
		require.NoError(t, err)
	}
	shown.Reset()
	log.showEnd("it ended (%s)", "exit status 1")
	require.Equal(t, lastLines+1, strings.Count(shown.String(), "\n"))
	require.True(t, strings.HasPrefix(shown.String(),
		"dev         | it ended (exit status 1); its last lines of "+path+":\nstatus page | level=WARN line=2\n"), shown.String())
	shown.Reset()
	log.release()
	require.Equal(t, 12, strings.Count(shown.String(), "status page | level=WARN line="))
	log.close()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "time=1 level=INFO msg=one\n")
	require.Contains(t, string(text), "panic: five\nsixlevel=WARN line=0\n")

	// The next system of the folder begins anew.
	_, err = newLogs(dir, newTerminal(&shown))
	require.NoError(t, err)
	require.NoFileExists(t, path)
	old, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Equal(t, text, old)
}
