package stacktest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// What Temporal keeps in memory of workflows is bounded in bytes: many large ones
// are on disk, not in memory.
func TestMemoryIsBounded(t *testing.T) {
	const workflows, each = 200, 1 << 20
	t.Setenv("GOGC", "20") // little garbage beside what is in use
	st := stacktest.StartOwn(t, "--only", "temporal")
	c, ctx := st.Dial(t), testContext(t)
	before := stacktest.Memory(st.PID)
	if before == 0 {
		t.Skip("needs /proc of Linux")
	}
	memo := map[string]any{"large": strings.Repeat("x", each)}
	var starts errgroup.Group
	starts.SetLimit(4)
	for i := range workflows {
		starts.Go(func() error {
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("large-%d", i), TaskQueue: "nobody", Memo: memo}, "Large")
			return err
		})
	}
	require.NoError(t, starts.Wait())
	grown := stacktest.Memory(st.PID) - before
	t.Logf("%d MiB of workflows, %d MiB of memory", workflows*each>>20, grown>>20)
	// Counted in entries they would all be in memory, at 2.5 times their size.
	require.Less(t, grown, workflows*each*3/2)
}
