package job_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"GenerateLogoAvatarVariantsToMinio": "generate_logo_avatar_variants_to_minio",
		"GeneratePhotoVariantsToMinio":      "generate_photo_variants_to_minio",
		"DiscoverAndSyncTables":             "discover_and_sync_tables",
		"OrchestrateIntegration":            "orchestrate_integration",
		"SideEffectsSubscribeToChanges":     "side_effects_subscribe_to_changes",
		"HandleOrganizationTeardown":        "handle_organization_teardown",
		"ReverseSyncSubscribeToChanges":     "reverse_sync_subscribe_to_changes",
		"ReverseSyncVocabularyMetadata":     "reverse_sync_vocabulary_metadata",
		"ReverseSyncOrganizationMetadata":   "reverse_sync_organization_metadata",
		"ReverseSyncSiteMetadata":           "reverse_sync_site_metadata",
		"ReverseSyncStationMetadata":        "reverse_sync_station_metadata",
		"ReverseSyncThingTypeMetadata":      "reverse_sync_thing_type_metadata",
		"ReverseSyncDatastreamMetadata":     "reverse_sync_datastream_metadata",
		"ExtractCampbellScientificLdmp":     "extract_campbell_scientific_ldmp",
		"PrepareCampbellScientificLdmp":     "prepare_campbell_scientific_ldmp",
		"ExtractHoboTimeFrame":              "extract_hobo_time_frame",
		"LiveLoadInfluxV1":                  "live_load_influx_v1",
		"PostToArchive":                     "post_to_archive",
		"HTTPProbe":                         "http_probe",
		"LoadV2Now":                         "load_v2_now",
		"X":                                 "x",
		"":                                  "",
	} {
		require.Equal(t, want, job.SnakeCase(name))
	}
	require.Equal(t, "live_load_influx_v1.common1", job.ID("LiveLoadInfluxV1", "common1"))
}

func FuzzSnakeCase(f *testing.F) {
	for _, seed := range []string{"LiveLoadInfluxV1", "HTTPProbe", "X", "", "Ünï", "a_b", "A1B2", "\xff"} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	f.Fuzz(func(t *testing.T, name string) {
		snake := job.SnakeCase(name)
		if job.CheckTypeName(name) != nil {
			return
		}
		require.Regexp(t, form, snake)
		require.Equal(t, snake, job.SnakeCase(snake))
		require.Equal(t, strings.ToLower(name), strings.ReplaceAll(snake, "_", ""))
	})
}

func recurring() job.Job {
	return job.Job{
		ID:       "extract_hobo_time_frame.north",
		Type:     "ExtractHoboTimeFrame",
		Worker:   job.WorkerExtract,
		Provider: job.ProviderTOML,
		Spec:     json.RawMessage(`{"logger": "1", "window": {"from": 1, "to": 2.50}}`),
		Trigger:  job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(15 * time.Minute)}},
		Options:  job.DefaultOptions(job.ModeRecurring),
	}
}

func hash(t *testing.T, j job.Job) string {
	t.Helper()
	text, err := j.DefinitionHash()
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{16}$`, text)
	return text
}

func TestDefinitionHash(t *testing.T) {
	t.Parallel()
	base := hash(t, recurring())
	changed := func(change func(*job.Job)) string {
		j := recurring()
		change(&j)
		return hash(t, j)
	}

	require.Equal(t, base, changed(func(j *job.Job) {
		j.Spec = json.RawMessage("{\"window\":{\"to\":2.50,\n\"from\":1},\t\"logger\":\"1\"}")
	}), "order of keys and white space")

	for what, change := range map[string]func(*job.Job){
		"spec":         func(j *job.Job) { j.Spec = json.RawMessage(`{"logger": "2"}`) },
		"large number": func(j *job.Job) { j.Spec = json.RawMessage(`{"logger": 9007199254740993}`) },
		"description":  func(j *job.Job) { j.Options.Description = "new" },
		"interval":     func(j *job.Job) { j.Recurring = &job.Recurring{RecurEvery: job.Duration(time.Minute)} },
		"tags":         func(j *job.Job) { j.Options.Tags = map[string]string{"team": "a"} },
		"owner":        func(j *job.Job) { j.Options.Owner = job.Owner{User: "a"} },
		"paused":       func(j *job.Job) { j.Options.Paused = true },
		"type":         func(j *job.Job) { j.Type = "Other" },
	} {
		require.NotEqual(t, base, changed(change), what)
	}
	require.NotEqual(t,
		changed(func(j *job.Job) { j.Spec = json.RawMessage(`{"n": 9007199254740992}`) }),
		changed(func(j *job.Job) { j.Spec = json.RawMessage(`{"n": 9007199254740993}`) }),
		"digits of large numbers count")
}

func TestDefinitionHashOfOneShotAndQueued(t *testing.T) {
	t.Parallel()
	for _, schedule := range []job.Trigger{
		{OneShot: &job.OneShot{}},
		{Queued: &job.Queued{Queue: "tables"}},
	} {
		j := recurring()
		j.Trigger = schedule
		base := hash(t, j)

		same := j
		same.Options.Description = "new"
		same.Options.RunTimeout = job.Duration(time.Minute)
		same.Provider = job.ProviderAPI
		require.Equal(t, base, hash(t, same), schedule.Mode())

		spec := j
		spec.Spec = json.RawMessage(`{"logger": "2"}`)
		require.NotEqual(t, base, hash(t, spec), schedule.Mode())

		kind := j
		kind.Type = "Other"
		require.NotEqual(t, base, hash(t, kind), schedule.Mode())
	}
}

func TestDefinitionHashOfNoSpecIsThatOfAnEmptyOne(t *testing.T) {
	t.Parallel()
	j := recurring()
	j.Spec = nil
	none := hash(t, j)
	j.Spec = json.RawMessage(" { } ")
	require.Equal(t, none, hash(t, j))
}

func TestDefinitionHashRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"{", "{} {}", "nope"} {
		j := recurring()
		j.Spec = json.RawMessage(spec)
		_, err := j.DefinitionHash()
		require.ErrorContains(t, err, "job extract_hobo_time_frame.north: spec: ", spec)
	}
}

func TestJobJSONRoundTrip(t *testing.T) {
	t.Parallel()
	j := recurring()
	j.Options.Owner = job.Owner{Organization: "ucnrs"}
	text, err := json.Marshal(j)
	require.NoError(t, err)
	require.Contains(t, string(text), `"owner":"organization:ucnrs"`)
	require.Contains(t, string(text), `"recurring":{"recur_every":"PT15M"}`)

	var back job.Job
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, hash(t, j), hash(t, back))
	require.Equal(t, j.Options, back.Options)
}

func TestTheTimeOfAOneShotIsPartOfItsHash(t *testing.T) {
	t.Parallel()
	hash := func(at time.Time) string {
		j := job.Job{ID: "a.b", Type: "A", Spec: []byte(`{}`), Trigger: job.Trigger{OneShot: &job.OneShot{At: at}}}
		text, err := j.DefinitionHash()
		require.NoError(t, err)
		return text
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	require.NotEqual(t, hash(time.Time{}), hash(noon))
	require.Equal(t, hash(noon), hash(noon.In(time.FixedZone("", 7200))))
	queued := job.Job{ID: "a.b", Type: "A", Spec: []byte(`{}`), Trigger: job.Trigger{Queued: &job.Queued{Queue: "q"}}}
	same, err := queued.DefinitionHash()
	require.NoError(t, err)
	require.Equal(t, same, hash(time.Time{}))
}
