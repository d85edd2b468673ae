package workers_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/workers"
)

// TestDocumentedFlags compares the table of flags in docs/operating.md with the flags.
func TestDocumentedFlags(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	workers.Flags().VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(&table, "| `--%s` | %s | %s |\n", strings.TrimSpace(f.Name+" "+value), cmp.Or(f.DefValue, "–"), usage)
	})
	text, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "<!-- begin of generated: flags of workers -->\n\n")
	require.True(t, found)
	documented, _, found := strings.Cut(rest, "\n<!-- end of generated -->")
	require.True(t, found)
	require.Equal(t, table.String(), documented, "docs/operating.md has other flags than the code: copy this table into it\n%s", table.String())
}
