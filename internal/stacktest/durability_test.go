package stacktest_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func TestDataIsKept(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, st *stacktest.Stack){
		"over a restart":   func(t *testing.T, st *stacktest.Stack) { require.Equal(t, 0, st.Stop()) },
		"over a kill -9":   func(_ *testing.T, st *stacktest.Stack) { st.Kill() },
		"over two of them": func(t *testing.T, st *stacktest.Stack) { st.Kill(); st.Restart(t); st.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			st := stacktest.StartOwn(t)
			ctx := testContext(t)
			before := st.Info

			runID := startWorkflow(ctx, t, st.Dial(t), "kept")
			ack, err := dialJetStream(t, st).Publish(ctx, "dendra.raw.v1.kept", []byte("message"))
			require.NoError(t, err)
			writePoint(t, dialInflux(t, st), "kept")
			_, err = dialS3(t, st).PutObject(ctx, "uploads", "kept.txt", strings.NewReader("object"), 6, minio.PutObjectOptions{})
			require.NoError(t, err)
			config := platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}
			token := lastToken(ctx, t, dialPlatform(t, st))
			_, err = platformtest.Put(ctx, config, keptOrganization, "")
			require.NoError(t, err)

			end(t, st)
			st.Restart(t)
			require.Equal(t, before.Temporal, st.Temporal, "the ports are the same")
			require.Equal(t, before.S3, st.S3)

			found, err := st.Dial(t).DescribeWorkflowExecution(ctx, "kept", "")
			require.NoError(t, err)
			require.Equal(t, runID, found.GetWorkflowExecutionInfo().GetExecution().GetRunId())
			stream, err := dialJetStream(t, st).Stream(ctx, "RAW")
			require.NoError(t, err)
			msg, err := stream.GetMsg(ctx, ack.Sequence)
			require.NoError(t, err)
			require.Equal(t, "message", string(msg.Data))
			require.EqualValues(t, 1, countPoints(t, dialInflux(t, st), "kept"))
			object, err := dialS3(t, st).GetObject(ctx, "uploads", "kept.txt", minio.GetObjectOptions{})
			require.NoError(t, err)
			body, err := io.ReadAll(object)
			require.NoError(t, err)
			require.Equal(t, "object", string(body))
			changes, err := dialPlatform(t, st).Changes.StreamChanges(ctx, &platformv1.StreamChangesRequest{
				Start: &platformv1.StreamChangesRequest_ResumeToken{ResumeToken: token},
			})
			require.NoError(t, err)
			change, err := changes.Receive()
			require.NoError(t, err)
			require.Equal(t, keptOrganization.GetOrganization().GetId(), change.GetChange().GetResourceId())
		})
	}
}

var keptOrganization = &platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
	Id: "0123456789abcdef01234567", Name: "Kept", Slug: "kept",
}}}

// lastToken is the resume token after the last change.
func lastToken(ctx context.Context, t *testing.T, c *platform.Client) string {
	t.Helper()
	changes, err := c.Changes.StreamChanges(ctx, &platformv1.StreamChangesRequest{Start: &platformv1.StreamChangesRequest_Now{Now: true}})
	require.NoError(t, err)
	defer func() { _ = changes.Close() }()
	checkpoint, err := changes.Receive()
	require.NoError(t, err)
	return checkpoint.GetResumeToken()
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	_, port, err := net.SplitHostPort(st.Influx[len("http://"):])
	require.NoError(t, err)

	second := stacktest.StartProcess(t, nil, "devstack", "--ephemeral", "--free-ports", "--influx-port", port)
	require.Equal(t, 1, second.Wait())
	require.Contains(t, second.Output(), "port "+port+" of InfluxDB is taken on 127.0.0.1")
	require.Contains(t, second.Output(), "--influx-port")
	require.Equal(t, 1, strings.Count(second.Output(), "\n"), "one sentence: %s", second.Output())
}

func TestDataFolderIsHeldByOne(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	second := stacktest.StartProcess(t, nil, "devstack", "--data", st.Data, "--free-ports")
	require.Equal(t, 1, second.Wait())
	require.Contains(t, second.Output(), "data folder "+st.Data+" is in use by another devstack")
}

func TestOtherReleaseIsRefused(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	require.Equal(t, 0, st.Stop())
	recorded := filepath.Join(st.Data, "temporal", "server-version")
	version, err := os.ReadFile(recorded)
	require.NoError(t, err)
	require.Equal(t, st.Versions["temporal"], string(bytes.TrimSpace(version)))

	require.NoError(t, os.WriteFile(recorded, []byte("1.2.3\n"), 0o600))
	second := stacktest.StartProcess(t, nil, "devstack", "--data", st.Data, "--free-ports")
	require.Equal(t, 1, second.Wait())
	require.Contains(t, second.Output(), "was written by Temporal server 1.2.3 and this is "+st.Versions["temporal"])
	require.Contains(t, second.Output(), "move the folder away")
}

func TestUnfinishedSetupBeginsAnew(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	folder := filepath.Join(data, "temporal")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	// As left by a process that died while it made the schema.
	require.NoError(t, os.WriteFile(filepath.Join(folder, "temporal.db"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "setup-unfinished"), nil, 0o600))

	st := stacktest.StartOwn(t, "--data", data)
	startWorkflow(testContext(t), t, st.Dial(t), "first")
	require.NoFileExists(t, filepath.Join(folder, "setup-unfinished"))
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags []string
		want  string
	}{
		"no data":          {nil, "give --data DIR to keep the data or --ephemeral to drop it"},
		"data twice":       {[]string{"--ephemeral", "--data", "x"}, "one of the two"},
		"unknown tuning":   {[]string{"--ephemeral", "--temporal-tuning", "fast"}, `temporal tuning "fast" is not known`},
		"unknown sync":     {[]string{"--ephemeral", "--nats-sync-interval", "soon"}, `--nats-sync-interval: "soon" is neither a duration such as 10s nor always`},
		"unknown level":    {[]string{"--ephemeral", "--log-level", "loud"}, `"loud" is not known`},
		"unknown server":   {[]string{"--ephemeral", "--only", "nats,redis"}, `--only: server "redis" is not known: they are temporal, ui, nats,`},
		"Web UI alone":     {[]string{"--ephemeral", "--only", "ui"}, "--only: ui needs temporal"},
		"stray argument":   {[]string{"--ephemeral", "run"}, `argument "run" is not known`},
		"empty namespace":  {[]string{"--ephemeral", "--namespace", ""}, "--namespace is empty"},
		"a high port":      {[]string{"--ephemeral", "--nats-port", "65536"}, "--nats-port 65536 is not a port: it is from 0, for a free one, to 65535"},
		"the highest port": {[]string{"--ephemeral", "--nats-port", "65535", "--log-level", "loud"}, `"loud" is not known`},
		"a negative port":  {[]string{"--ephemeral", "--s3-port", "-1"}, "--s3-port -1 is not a port: it is from 0, for a free one, to 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("needs the devstack binary")
			}
			p := stacktest.StartProcess(t, nil, "devstack", tt.flags...)
			require.Equal(t, 1, p.Wait())
			require.Contains(t, p.Output(), tt.want)
		})
	}
}

// A server that runs by itself can be killed by itself, and is found again.
func TestServersOfTheirOwn(t *testing.T) {
	t.Parallel()
	nats := stacktest.StartOwn(t, "--only", "nats")
	st := stacktest.StartOwn(t, "--only", "influx,s3")
	require.Empty(t, st.NATS)
	require.Empty(t, st.Temporal)
	require.Empty(t, nats.Influx)
	st.Join(nats)
	before := st.Info
	ctx := testContext(t)
	ack, err := dialJetStream(t, st).Publish(ctx, "dendra.raw.v1.alone", []byte("message"))
	require.NoError(t, err)

	nats.Kill()
	writePoint(t, dialInflux(t, st), "alone")
	nats.Restart(t)
	stream, err := dialJetStream(t, st).Stream(ctx, "RAW")
	require.NoError(t, err)
	msg, err := stream.GetMsg(ctx, ack.Sequence)
	require.NoError(t, err)
	require.Equal(t, "message", string(msg.Data))

	st.Kill()
	st.Restart(t)
	require.Equal(t, before.Env(), st.Env(), "all are where they were")
	require.EqualValues(t, 1, countPoints(t, dialInflux(t, st), "alone"))
}

func TestEphemeralDataIsRemoved(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack")
	}
	temp := t.TempDir()
	p := stacktest.StartProgram(t, nil, stacktest.Program{
		Name: "devstack", Args: []string{"--ephemeral", "--free-ports"}, Env: []string{"TMPDIR=" + temp},
	})
	p.WaitOutput(`"ready_ms"`)
	folders, err := filepath.Glob(filepath.Join(temp, "devstack-*", "temporal"))
	require.NoError(t, err)
	require.Len(t, folders, 1)

	p.Signal(syscall.SIGTERM)
	require.Equal(t, 0, p.Wait())
	require.NoDirExists(t, filepath.Dir(folders[0]))
	require.Equal(t, 1, strings.Count(p.Output(), "\n"), "the ready line and nothing else: %s", p.Output())
}

// An older stack may have made the namespace without what jobs need now.
func TestExistingNamespaceIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	ctx := testContext(t)
	_, err := st.Dial(t).WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        "older",
		WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)

	st.Restart(t, "--namespace", "older")
	require.Equal(t, "older", st.Namespace)
	c := st.Dial(t)
	found, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "older"})
	require.NoError(t, err)
	require.Equal(t, 30*24*time.Hour, found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
	attributes, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: "older"})
	require.NoError(t, err)
	for _, name := range []string{"JobId", "JobType", "JobMode", "JobQueue", "JobProvider", "JobOwner", "JobDefinitionHash"} {
		require.Equal(t, enums.INDEXED_VALUE_TYPE_KEYWORD, attributes.GetCustomAttributes()[name], name)
	}
	// And the other way round: what someone changed is set right again.
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: "older",
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(48 * time.Hour)},
	})
	require.NoError(t, err)
	st.Kill()
	st.Restart(t)
	found, err = st.Dial(t).WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "older"})
	require.NoError(t, err)
	require.Equal(t, 30*24*time.Hour, found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())
}
