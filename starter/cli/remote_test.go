package cli_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// remote runs commands that know the address of a server alone, and notes which.
type remote struct {
	*testing.T
	console
	used map[string]bool
}

// refusing are the addresses of all other servers: nothing listens there. That of Temporal is
// in the environment of the process.
var refusing = map[string]string{
	"DENDRA_NATS_URL": "nats://127.0.0.1:1", "DENDRA_S3_ENDPOINT": "http://127.0.0.1:1", "DENDRA_S3_ACCESS_KEY": "none", "DENDRA_S3_SECRET_KEY": "none",
	"DENDRA_PLATFORM_URL": "http://127.0.0.1:1", "DENDRA_PLATFORM_TOKEN": "none", "DENDRA_RELEASE2_URL": "http://127.0.0.1:1", "DENDRA_RELEASE2_TOKEN": "none",
}

// does runs a command until it ends with the exit code and has written a text: lists lag, and
// what the command is about may take its time.
func (r *remote) does(code int, want string, args ...string) result {
	r.Helper()
	name := "starter"
	for _, arg := range args {
		next := name + " " + arg
		if !slices.ContainsFunc(cli.Commands(), func(c string) bool { return c == next || strings.HasPrefix(c, next+" ") }) {
			break
		}
		name = next
	}
	r.used[name] = true
	var got result
	stacktest.WaitFor(r, strings.Join(args, " "), func() (bool, error) {
		got = r.run(r.Context(), args...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			return false, fmt.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
		return true, nil
	})
	return got
}

// TestEveryCommandThroughAServer runs every command but those that work on this machine by
// nature, with the address of a server alone.
func TestEveryCommandThroughAServer(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	env := environmentOf(st.Info)
	getenv := func(name string) string { return env[name] }
	streams := connectPipeline(t, st)
	api, err := activities.ConnectPlatform(getenv)
	require.NoError(t, err)
	store, err := activities.ConnectObjects(getenv)
	require.NoError(t, err)
	at, err := places.FromEnv(getenv)
	require.NoError(t, err)
	startWorker(t, st)
	startOrchestrators(t, st, append(reversesync.Metadata(streams, getenv), integration.ReconcileJobs(api), teardown.Organization(store, api, streams, at))...)

	serving := stacktest.StartProcess(t, st, "starter", "serve", "--listen", "127.0.0.1:0")
	serving.WaitOutput("starter: serving http://")
	r := &remote{T: t, used: map[string]bool{}, console: console{env: map[string]string{
		cli.EnvServer: regexp.MustCompile(`serving (\S+)`).FindStringSubmatch(serving.Output())[1],
	}}}
	for name, value := range refusing {
		r.env[name] = value
	}
	r.does(0, "clitest", "workers")
	r.does(0, "serving", "workers", "describe", regexp.MustCompile(`clitest@\S+`).FindString(r.ok(t, "workers")))
	remoteJobs(r)
	remoteRuns(r)
	remoteQueues(r)
	remotePipeline(r, st, streams)
	remotePlatform(r, platform.Config{URL: st.Platform.URL, Token: st.Platform.Token})
	r.does(0, "as of", "top")

	var used []string
	for name := range r.used {
		used = append(used, name)
	}
	require.ElementsMatch(t, cli.Commands(), used)
	t.Logf("%d commands", len(used))
}

func remoteJobs(r *remote) {
	file := writeFile(r.T, "jobs.toml", `
[jobs.take_steps.daily]
spec = { steps = 1 }
recurring = { recur_every = "P1D" }

[jobs.take_steps.loop]
spec = { steps = 1 }
continuous = { interval = "PT1H" }

[jobs.take_steps.once]
spec = { steps = 1 }
one_shot = {}
`)
	r.does(0, "", "validate", file)
	r.does(2, "3 to create", "plan", "-f", file)
	r.does(0, "Applied: 3 created", "apply", "--yes", "-f", file)
	r.does(0, "take_steps.daily", "jobs", "list")
	r.does(0, "", "drift")
	r.does(0, "take_steps.daily", "jobs", "describe", "take_steps.daily")
	r.does(0, "", "jobs", "next", "take_steps.daily")
	r.does(0, "take_steps.daily", "upcoming", "--within", "PT24H")
	r.does(0, "take_steps.daily", "jobs", "pause", "take_steps.daily", "--reason", "lunch")
	r.does(0, "take_steps.daily", "jobs", "resume", "take_steps.daily")
	r.does(0, "take_steps.daily", "jobs", "skip-next", "take_steps.daily")
	r.does(0, "take_steps.daily", "jobs", "trigger", "take_steps.daily")
	r.does(0, "", "jobs", "backfill", "take_steps.daily", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T12:00:00Z", "--yes")
	r.does(0, "take_steps.loop", "jobs", "stop", "take_steps.loop", "--yes")
	r.does(0, "take_steps.loop", "jobs", "restart", "take_steps.loop")
}

func remoteRuns(r *remote) {
	r.does(0, "all steps taken", "run", "take_steps.once")
	r.does(0, "take_steps.once", "runs", "list")
	r.does(0, "all steps taken", "runs", "describe", "take_steps.once")
	r.does(0, "", "runs", "logs", "take_steps.once")
	r.does(1, "told to fail", "run", "--type", "TakeSteps", "--key", "fails", "--spec", `{"steps": 1, "fail": true}`, "--max-retry-count", "0")
	r.does(0, "take_steps.fails", "runs", "retry", "take_steps.fails")
	gate := filepath.Join(r.TempDir(), "gate")
	for _, verb := range []string{"cancel", "terminate"} {
		r.does(0, "", "run", "--type", "TakeSteps", "--key", verb, "--spec", fmt.Sprintf(`{"steps": 1, "gate": %q}`, gate), "--detach")
		r.does(0, "take_steps."+verb, "runs", verb, "take_steps."+verb, "--yes")
	}
}

func remoteQueues(r *remote) {
	put := func(key, spec string) {
		r.does(0, key, "queues", "enqueue", "line", "--type", "TakeSteps", "--key", key, "--spec", spec, "--max-retry-count", "0")
	}
	r.does(0, "line", "queues", "set", "line", "--on-failure", "halt")
	r.does(0, "line", "queues", "pause", "line")
	put("broken", `{"steps": 1, "fail": true}`)
	for n := range 4 {
		put(fmt.Sprint("item-", n), `{"steps": 1}`)
	}
	r.does(0, "take_steps.item-3", "queues", "peek", "line")
	r.does(0, "take_steps.item-2", "queues", "move", "line", "take_steps.item-2")
	r.does(0, "take_steps.item-3", "queues", "cancel", "line", "take_steps.item-3", "--yes")
	r.does(0, "", "queues", "purge", "line", "--from", "2", "--to", "3", "--yes")
	r.does(0, "line", "queues", "resume", "line")
	r.does(0, "halted", "queues", "describe", "line")
	r.does(0, "line", "queues", "list")
	r.does(0, "queue-halted", "alerts", "list")
	r.does(0, "", "alerts", "silence", "queue-halted/line", "--for", "PT1H")
	name := answered[jobsv1.ListSilencesResponse](r.T, r.console, "alerts", "silences").GetSilences()[0].GetName()
	r.does(0, name, "alerts", "silences")
	r.does(0, "", "alerts", "unsilence", name)
	r.does(0, "", "queues", "skip", "line", "--yes")
	r.does(0, "take_steps.broken", "queues", "dead", "list", "line")
	r.does(0, "take_steps.broken", "queues", "dead", "retry", "line", "take_steps.broken")
	r.does(0, "", "queues", "skip", "line", "--yes")
	r.does(0, "", "queues", "dead", "drop", "line", "--all", "--yes")
	r.does(0, "line", "queues", "drain", "line", "--yes")
	r.does(0, "line", "queues", "recover", "line")
}

func remotePipeline(r *remote, st *stacktest.Stack, streams *pipeline.Client) {
	putPoints(r.T, streams, "remote", "RefusedPoint", 2)
	r.does(0, "RefusedPoint", "quarantine", "list", "--location", "remote")
	items := answered[jobsv1.ListQuarantineItemsResponse](r.T, r.console, "quarantine", "list", "--location", "remote").GetItems()
	r.does(0, "field type conflict", "quarantine", "show", fmt.Sprint(items[0].GetId()))
	r.does(0, "", "quarantine", "replay", fmt.Sprint(items[0].GetId()), "--yes")
	r.does(0, "", "quarantine", "drop", fmt.Sprint(items[1].GetId()), "--yes")

	const jobID = "extract_campbell_scientific_ldmp.remote"
	r.does(0, "set to 2026-03-04", "bookmarks", "set", jobID, "oak", "2026-03-04T00:00:00Z")
	r.does(0, "oak", "bookmarks", "list", jobID)

	// The database has lost its retention policy, so that the message is refused.
	for _, statement := range []string{`CREATE DATABASE "refused" WITH NAME "gone"`, `DROP RETENTION POLICY "gone" ON "refused"`} {
		_, err := influx.Query(r.Context(), influx.Config{URL: st.Influx}, "", statement)
		require.NoError(r, err)
	}
	var messages []pipeline.Outgoing
	for n, database := range []string{"held", "refused", "held"} {
		messages = append(messages, pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, "held"), Body: fmt.Appendf(nil,
			`{"context":{"station":"s"},"payload":{"options":{"database":%q},"points":[{"measurement":"m","fields":{"v":1},"time":%d}]}}`, database, n)})
	}
	_, err := streams.Publish(r.Context(), messages)
	require.NoError(r, err)
	keepLoading(r.T, st, streams, "held")
	r.does(0, "is blocked by message", "loads", "held")
	r.does(0, "is in quarantine", "loads", "skip", "held", "--yes")

	r.does(0, "", "archive", "audit")
	r.does(0, "", "archive", "list")
	r.does(0, "", "archive", "cat", "--organization", "remote")
}

func remotePlatform(r *remote, config platform.Config) {
	const id = "5a8f00000000000000000001"
	spec, err := structpb.NewStruct(map[string]any{"organization": "${organization_slug}", "location": "common1"})
	require.NoError(r, err)
	for _, resource := range []*platformv1.Resource{
		{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{Id: id, Name: "Erica", Slug: "erica", IsEnabled: true}}},
		{Resource: &platformv1.Resource_IntegrationType{IntegrationType: &platformv1.IntegrationType{
			Id: "remote", Name: "Remote", Direction: platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND,
			Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_ORGANIZATION,
			Jobs: []*platformv1.IntegrationJob{{JobType: "PrepareHoboTimeFrame", Spec: spec, Trigger: &platformv1.JobTrigger{
				Mode: &platformv1.JobTrigger_Continuous{Continuous: &platformv1.ContinuousMode{Interval: durationpb.New(time.Minute)}},
			}}},
		}}},
		{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: &platformv1.IntegrationConfig{
			Id: "far", TypeId: "remote", OrganizationId: id, Name: "Far", OperationMode: platformv1.OperationMode_OPERATION_MODE_LIVE,
		}}},
	} {
		_, err := platformtest.Put(r.Context(), config, resource, "")
		require.NoError(r, err)
	}
	r.does(0, "far", "integrations", "list")
	r.does(0, "", "integrations", "check", "far")
	r.does(0, "is enabled", "integrations", "enable", "far")
	r.does(0, "Version", "integrations", "describe", "far")
	r.does(0, "Reconciled: 1 created", "reconcile")
	r.does(0, "is disabled", "integrations", "disable", "far")
	r.does(2, "+ organization "+id+"  Erica", "reverse-sync", "plan")
	r.does(0, "+ organization "+id+"  Erica", "reverse-sync", "run")
	r.does(0, "No conflict found.", "reverse-sync", "conflicts")
	r.does(0, "", "teardown", "plan", "erica")
	r.does(0, "", "teardown", "start", "erica", "--grace", "P1D", "--yes")
	r.does(0, "erica", "teardown", "describe", "erica")
	r.does(0, "erica", "teardown", "undo", "erica")
}
