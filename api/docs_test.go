package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// documentedCommands runs the commands of docs/job-api.md, in their order.
func documentedCommands(t *testing.T, w *world) {
	root := stacktest.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "job-api.md"))
	require.NoError(t, err)
	ran := 0
	for n, block := range strings.Split(string(text), "```") {
		program, _, _ := strings.Cut(strings.TrimSpace(block), " ")
		if n%2 == 0 || program != "curl" && program != "bin/tools/buf" {
			continue
		}
		ran++
		if !strings.Contains(program, "/") {
			_, err = exec.LookPath(program)
		} else {
			_, err = os.Stat(filepath.Join(root, program))
		}
		if err != nil {
			t.Logf("there is no %s: its commands are left out", program)
			continue
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", block)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "API="+w.url, "BUF_CACHE_DIR="+t.TempDir())
		answer, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", block, answer)
		require.NotContains(t, string(answer), `"code"`, block)
		require.NotEmpty(t, answer, block)
	}
	require.Equal(t, 3, ran)
}
