package stacktest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// The namespace's service succeeds at its first start, and again, and then leaves
// alone what was changed since. What it made can be used at once.
func TestComposeNamespace(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	script := readCompose(t).script(t, "temporal-namespace")
	ctx, c := testContext(t), st.Dial(t)
	const namespace = "composed"
	run := func() {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-eu", "-c", script)
		cmd.Env = append(os.Environ(), "PATH="+temporalOnPath(t)+":"+os.Getenv("PATH"), "TEMPORAL_ADDRESS="+st.Temporal, "NAMESPACE="+namespace)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	retention := func() time.Duration {
		found, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		require.NoError(t, err)
		return found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	}

	run()
	require.Equal(t, 30*24*time.Hour, retention())
	for _, name := range []string{"JobId", "JobType", "JobMode", "JobQueue", "JobProvider", "JobOwner", "JobDefinitionHash"} {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: name + " = 'none'"})
		require.NoError(t, err, name)
	}
	_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(48 * time.Hour)},
	})
	require.NoError(t, err)
	run()
	require.Equal(t, 48*time.Hour, retention(), "it was changed")
}

// temporalVariable makes the test binary stand for Temporal's command line.
const temporalVariable = "DENDRA_TEST_TEMPORAL"

func TestMain(m *testing.M) {
	if os.Getenv(temporalVariable) == "" {
		os.Exit(m.Run())
	}
	if err := runTemporal(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// temporalOnPath returns a folder with a program temporal, which makes the calls
// that Temporal's own command line makes.
func temporalOnPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", temporalVariable, self)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "temporal"), []byte(program), 0o700))
	return folder
}

func runTemporal(ctx context.Context, args []string) error {
	words := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	fs := flag.NewFlagSet("temporal", flag.ContinueOnError)
	namespace := fs.String("namespace", "default", "")
	retention := fs.Duration("retention", 0, "")
	name, kind, query := fs.String("name", "", ""), fs.String("type", "", ""), fs.String("query", "", "")
	if err := fs.Parse(args[words:]); err != nil {
		return err
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS"), Namespace: *namespace})
	if err != nil {
		return err
	}
	defer c.Close()
	switch command := strings.Join(args[:words], " "); command {
	case "operator namespace describe":
		_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: *namespace})
	case "operator namespace create":
		_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: *namespace, WorkflowExecutionRetentionPeriod: durationpb.New(*retention),
		})
	case "operator namespace update":
		_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: *namespace, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(*retention)},
		})
	case "operator search-attribute list":
		var found *operatorservice.ListSearchAttributesResponse
		found, err = c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: *namespace})
		for name := range found.GetCustomAttributes() {
			_, _ = fmt.Fprintln(os.Stdout, name)
		}
	case "operator search-attribute create":
		if *kind != "Keyword" {
			return errors.New("type " + *kind)
		}
		_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: *namespace, SearchAttributes: map[string]enums.IndexedValueType{*name: enums.INDEXED_VALUE_TYPE_KEYWORD},
		})
	case "workflow count":
		_, err = c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: *namespace, Query: *query})
	default:
		return fmt.Errorf("unknown command %q", command)
	}
	return err
}
