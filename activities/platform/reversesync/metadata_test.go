package reversesync_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// types are the job types by name, in their order.
func types(client *pipeline.Client, getenv func(string) string) (names []string, byName map[string]job.Type) {
	byName = map[string]job.Type{}
	for _, typ := range reversesync.Metadata(client, getenv) {
		names = append(names, typ.Name)
		byName[typ.Name] = typ
	}
	return names, byName
}

func newRun(typ job.Type, spec reversesync.Spec) *jobtest.Run {
	return jobtest.NewRun(jobtest.NewJob(typ, "all", job.Trigger{Queued: &job.Queued{Queue: "reverse-sync"}}, spec))
}

func TestATypeForEachKind(t *testing.T) {
	t.Parallel()
	names, byName := types(nil, nil)
	require.Equal(t, []string{
		"ReverseSyncVocabularyMetadata", "ReverseSyncOrganizationMetadata", "ReverseSyncSiteMetadata",
		"ReverseSyncThingTypeMetadata", "ReverseSyncStationMetadata", "ReverseSyncDatastreamMetadata",
	}, names)
	for _, typ := range byName {
		require.NoError(t, jobtest.CheckSpec(typ, `{}`))
		require.Equal(t, job.WorkerBackend, typ.Worker)
		require.False(t, typ.Allows(job.ModeContinuous))
	}
}

// TestRuns has a run create what a dry run announced, and tell of an edit.
func TestRuns(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats,platform")
	client := st.Pipeline(t)
	env := st.Variables()
	_, byName := types(client, func(name string) string { return env[name] })
	typ := byName["ReverseSyncOrganizationMetadata"]
	handle := func(spec reversesync.Spec) (job.Result, reversesync.Output) {
		result, err := typ.Handle(t.Context(), newRun(typ, spec))
		require.NoError(t, err)
		var output reversesync.Output
		require.NoError(t, json.Unmarshal(result.Output, &output))
		return result, output
	}
	const id = "5a8f00000000000000000001"
	_, err := platformtest.Put(t.Context(), platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, &platformv1.Resource{
		Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{Id: id, Name: "Erica", Slug: "erica"}},
	}, "")
	require.NoError(t, err)

	result, _ := handle(reversesync.Spec{DryRun: true})
	require.Equal(t, "dry run, nothing was written: entities: 1, created: 1, updated: 0, in conflict: 0, in line: 0", result.Message)
	result, _ = handle(reversesync.Spec{})
	require.Equal(t, "entities: 1, created: 1, updated: 0, in conflict: 0, in line: 0", result.Message)
	result, _ = handle(reversesync.Spec{})
	require.Equal(t, map[string]int64{"entities": 1, "created": 0, "updated": 0, "conflicts": 0, "gone": 0, "failed": 0}, result.Counts)

	human, err := release2.New(release2.Config{URL: st.Release2.URL, Token: st.Release2.Token + ":ada"})
	require.NoError(t, err)
	d, err := human.Get(t.Context(), "organizations", id)
	require.NoError(t, err)
	_, err = human.Patch(t.Context(), "organizations", id, d.VersionID(), release2.Patch{Set: map[string]any{"name": "Edited"}})
	require.NoError(t, err)
	result, output := handle(reversesync.Spec{})
	require.EqualValues(t, 1, result.Counts["conflicts"])
	require.Len(t, output.Differences, 1)
	require.Equal(t, []string{"name"}, output.Differences[0].Conflict.Fields)

	stopped := newRun(typ, reversesync.Spec{})
	stopped.Stop()
	_, err = typ.Handle(t.Context(), stopped)
	require.ErrorIs(t, err, job.ErrStopped)

	delete(env, release2.EnvURL)
	_, err = typ.Handle(t.Context(), newRun(typ, reversesync.Spec{}))
	failure := jobtest.FailureOf(t, err)
	require.True(t, failure.Kind.Final())
	require.EqualError(t, err, "reverse sync: DENDRA_RELEASE2_URL is not set: it is the URL of the metadata API of Release 2")
}
