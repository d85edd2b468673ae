package api_test

import (
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func message(t *testing.T, text string) *jobsv1.Job {
	t.Helper()
	var m jobsv1.Job
	require.NoError(t, protojson.Unmarshal([]byte(text), &m))
	return &m
}

func TestUpdateMasks(t *testing.T) {
	t.Parallel()
	const live = `{"id":"a.b","spec":{"x":1,"y":{"z":2}},"recurring":{"cron":"0 6 * * *","jitter":"5s"},"options":{"tags":{"site":"a","kind":"k"},"runTimeout":"60s"}}`
	const wanted = `{"id":"a.b","spec":{"x":3},"recurring":{"recurEvery":"60s"},"options":{"tags":{"site":"b"}},"paused":true}`
	for _, c := range []struct{ mask, from, want string }{
		{"", wanted, `{"id":"a.b","spec":{"x":3},"recurring":{"recurEvery":"60s"},"options":{"tags":{"site":"b"}},"paused":true}`},
		{"paused", wanted, `{"id":"a.b","spec":{"x":1,"y":{"z":2}},"recurring":{"cron":"0 6 * * *","jitter":"5s"},"options":{"tags":{"site":"a","kind":"k"},"runTimeout":"60s"},"paused":true}`},
		{"spec", wanted, `{"id":"a.b","spec":{"x":3},"recurring":{"cron":"0 6 * * *","jitter":"5s"},"options":{"tags":{"site":"a","kind":"k"},"runTimeout":"60s"}}`},
		{"spec.x, spec.y", wanted, `{"id":"a.b","spec":{"x":3},"recurring":{"cron":"0 6 * * *","jitter":"5s"},"options":{"tags":{"site":"a","kind":"k"},"runTimeout":"60s"}}`},
		{"options.tags.site", wanted, `{"id":"a.b","spec":{"x":1,"y":{"z":2}},"recurring":{"cron":"0 6 * * *","jitter":"5s"},"options":{"tags":{"site":"b","kind":"k"},"runTimeout":"60s"}}`},
		{"options.tags.kind,options.runTimeout", wanted, `{"id":"a.b","spec":{"x":1,"y":{"z":2}},"recurring":{"cron":"0 6 * * *","jitter":"5s"},"options":{"tags":{"site":"a"}}}`},
		{"recurring.jitter", wanted, `{"id":"a.b","spec":{"x":1,"y":{"z":2}},"recurring":{"cron":"0 6 * * *"},"options":{"tags":{"site":"a","kind":"k"},"runTimeout":"60s"}}`},
		{"oneShot", `{"oneShot":{}}`, `{"id":"a.b","spec":{"x":1,"y":{"z":2}},"oneShot":{},"options":{"tags":{"site":"a","kind":"k"},"runTimeout":"60s"}}`},
	} {
		into, from := message(t, live), message(t, c.from)
		require.NoError(t, api.Merge(into, from, c.mask), c.mask)
		require.True(t, proto.Equal(message(t, c.want), into), "%q gives %s", c.mask, into)
		require.True(t, proto.Equal(message(t, c.from), from), "the request stays as it is")
	}
	for mask, want := range map[string]string{
		"state":           `"state": it is not a field that an update changes`,
		"id":              `"id": it is not a field`,
		"options.nothing": `"options.nothing": there is no such field`,
		"continuous":      `"continuous": the request does not set it`,
		"queued.queue":    `"queued.queue": the job has another mode`,
		"paused.x":        `"paused.x": it has no fields`,
	} {
		err := api.Merge(message(t, live), message(t, wanted), mask)
		requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
		require.ErrorContains(t, err, want)
	}
}

func TestAMergeWithTheJobItselfChangesNothing(t *testing.T) {
	t.Parallel()
	j := job.Job{
		ID: "a.b", Type: "A", Worker: "w", Provider: job.ProviderAPI, Spec: []byte(`{"x":1.0}`),
		Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}}, Options: job.DefaultOptions(job.ModeRecurring),
	}
	for _, mask := range []string{"", "spec", "recurring", "options", "paused", "options.tags", "recurring.offset"} {
		m := api.JobMessage(j)
		require.NoError(t, api.Merge(m, api.JobMessage(j), mask))
		require.True(t, proto.Equal(api.JobMessage(j), m), mask)
	}
}
