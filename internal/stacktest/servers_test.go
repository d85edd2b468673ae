package stacktest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	influx "github.com/influxdata/influxdb1-client/v2"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func TestEveryServerAnswers(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	ctx := testContext(t)

	t.Run("Temporal", func(t *testing.T) {
		info, err := st.Dial(t).WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		require.NoError(t, err)
		require.Equal(t, st.Versions["temporal"], info.GetServerVersion())
	})
	t.Run("Web UI", func(t *testing.T) {
		status, body := get(ctx, t, st.WebUI, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "<html")
		status, body = get(ctx, t, st.WebUI+"/api/v1/namespaces/"+st.Namespace, "")
		require.Equal(t, http.StatusOK, status, "the Web UI reaches Temporal")
		require.Contains(t, body, st.Namespace)
	})
	t.Run("NATS", func(t *testing.T) {
		js := dialJetStream(t, st)
		for stream, subject := range map[string]string{
			"RAW": "dendra.raw.v1.test", "PREPARED": "dendra.prep.v1.test", "QUARANTINE": "dendra.quarantine.v1.test",
		} {
			ack, err := js.Publish(ctx, subject, []byte("x"))
			require.NoError(t, err)
			require.Equal(t, stream, ack.Stream)
			s, err := js.Stream(ctx, stream)
			require.NoError(t, err)
			require.Equal(t, jetstream.FileStorage, s.CachedInfo().Config.Storage)
		}
		_, err := js.KeyValue(ctx, "bookmarks")
		require.NoError(t, err)
	})
	t.Run("InfluxDB", func(t *testing.T) {
		c := dialInflux(t, st)
		_, version, err := c.Ping(5 * time.Second)
		require.NoError(t, err)
		require.Equal(t, "1.8.3", version)
		require.Equal(t, []string{"common1"}, st.Databases)
		writePoint(t, c, "answers")
		require.EqualValues(t, 1, countPoints(t, c, "answers"))
	})
	t.Run("S3", func(t *testing.T) {
		c := dialS3(t, st)
		for _, bucket := range []string{"uploads", "media", "archive", "exports"} {
			exists, err := c.BucketExists(ctx, bucket)
			require.NoError(t, err)
			require.True(t, exists, bucket)
		}
		onlyNew := minio.PutObjectOptions{ContentType: "text/plain", UserMetadata: map[string]string{"Recipe": "r1"}}
		onlyNew.SetMatchETagExcept("*")
		_, err := c.PutObject(ctx, "media", "a/b.txt", bytes.NewReader([]byte("one")), 3, onlyNew)
		require.NoError(t, err)
		_, err = c.PutObject(ctx, "media", "a/b.txt", bytes.NewReader([]byte("two")), 3, onlyNew)
		require.Equal(t, http.StatusPreconditionFailed, minio.ToErrorResponse(err).StatusCode)
		info, err := c.StatObject(ctx, "media", "a/b.txt", minio.StatObjectOptions{})
		require.NoError(t, err)
		require.Equal(t, "text/plain", info.ContentType)
		require.Equal(t, "r1", info.UserMetadata["Recipe"])
	})
	t.Run("LoggerNet", func(t *testing.T) {
		c, err := ldmp.Open(ctx, ldmp.Config{Address: st.LDMP}, []ldmp.Group{{Station: "angelo", Table: "OneMin", Start: ldmp.AtNewest()}})
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		record, err := c.Next()
		require.NoError(t, err)
		require.Equal(t, "angelo", record.Station)
	})
	t.Run("HOBOlink", func(t *testing.T) {
		status, _ := get(ctx, t, st.HOBOlink.URL, "")
		require.NotEqual(t, http.StatusOK, status, "the token is asked for")
		require.Equal(t, "hobolink-dev-token", st.HOBOlink.Token)
	})
	t.Run("Platform API", func(t *testing.T) {
		_, err := dialPlatform(t, st).Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{})
		require.NoError(t, err)
		status, body := get(ctx, t, st.Release2.URL+"/stations", st.Release2.Token)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, `"total":0`)
	})
}

func TestEnvNamesEveryServer(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	require.Subset(t, st.Env(), []string{
		"TEMPORAL_ADDRESS=" + st.Temporal,
		"TEMPORAL_NAMESPACE=" + st.Namespace,
		"DENDRA_S3_ENDPOINT=" + st.S3.Endpoint,
		"DENDRA_S3_ACCESS_KEY=" + st.S3.AccessKey,
		"DENDRA_S3_SECRET_KEY=" + st.S3.SecretKey,
		"DENDRA_S3_REGION=us-east-1",
		"DENDRA_NATS_URL=" + st.NATS,
		"DENDRA_SECRET_HOBOLINK_DEMO=owners: *\n\nhobolink-dev-token",
		"DENDRA_PLATFORM_URL=" + st.Platform.URL,
		"DENDRA_PLATFORM_TOKEN=" + st.Platform.Token,
		"DENDRA_RELEASE2_URL=" + st.Release2.URL,
		"DENDRA_RELEASE2_TOKEN=" + st.Release2.Token,
	})
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // for a busy machine
	t.Cleanup(cancel)
	return ctx
}

func get(ctx context.Context, t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

func dialJetStream(t *testing.T, st *stacktest.Stack) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(st.NATS)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func dialPlatform(t *testing.T, st *stacktest.Stack) *platform.Client {
	t.Helper()
	c, err := platform.New(platform.Config{URL: st.Platform.URL, Token: st.Platform.Token})
	require.NoError(t, err)
	return c
}

func dialS3(t *testing.T, st *stacktest.Stack) *minio.Client {
	t.Helper()
	c, err := minio.New(st.S3.Endpoint[len("http://"):], &minio.Options{
		Creds:  credentials.NewStaticV4(st.S3.AccessKey, st.S3.SecretKey, ""),
		Region: st.S3.Region,
	})
	require.NoError(t, err)
	return c
}

func dialInflux(t *testing.T, st *stacktest.Stack) influx.Client {
	t.Helper()
	c, err := influx.NewHTTPClient(influx.HTTPConfig{Addr: st.Influx, Timeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func writePoint(t *testing.T, c influx.Client, measurement string) {
	t.Helper()
	batch, err := influx.NewBatchPoints(influx.BatchPointsConfig{Database: "common1"})
	require.NoError(t, err)
	point, err := influx.NewPoint(measurement, nil, map[string]any{"v": 1.5}, time.Unix(1_700_000_000, 0))
	require.NoError(t, err)
	batch.AddPoint(point)
	require.NoError(t, c.Write(batch))
}

func countPoints(t *testing.T, c influx.Client, measurement string) int {
	t.Helper()
	res, err := c.Query(influx.NewQuery(fmt.Sprintf("SELECT v FROM %q", measurement), "common1", "ns"))
	require.NoError(t, err)
	require.NoError(t, res.Error())
	require.Len(t, res.Results, 1)
	if len(res.Results[0].Series) == 0 {
		return 0
	}
	return len(res.Results[0].Series[0].Values)
}

func startWorkflow(ctx context.Context, t *testing.T, c client.Client, id string) string {
	t.Helper()
	// No worker serves it: what counts is that it is kept.
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "Kept")
	require.NoError(t, err)
	return run.GetRunID()
}
