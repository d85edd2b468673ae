package cli_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// script has every command that works through --server.
func script() []part {
	return []part{
		{"plans", true, planSteps()}, {"jobs", false, jobSteps()}, {"runs", false, runSteps()}, {"queues", false, queueSteps()},
		{"pipeline", false, pipelineSteps()}, {"metadata", true, metadataSteps()}, {"images", true, imageSteps()}, {"integration configs", false, configSteps()}, {"integrations", true, integrationSteps()},
		{"teardown", true, teardownSteps()}, {"builds", false, deploySteps()}, {"wrong input", false, wrongSteps()},
	}
}

func planSteps() []step {
	return []step{
		prepared(planFiles, do(0, "2 jobs are valid|jobs", "validate DECLARED")),
		do(1, "spec", "validate WRONG"),
		ask(2, "0 no longer declared|CREATE", "plan -f DECLARED"),
		do(1, "add --yes to apply the plan", "apply -f DECLARED"),
		do(0, "Applied: 2 created", "apply -f DECLARED --yes --parallel 1"),
		ask(0, "2 unchanged|UNCHANGED", "plan -f DECLARED"),
		do(0, "2 unchanged", "apply -f DECLARED"),
		ask(0, "0 jobs have drifted, of 2 applied|{", "drift"),
		do(0, "paused", "jobs pause take_steps.often-NAME --reason lunch"),
		ask(2, "paused: lunch|lunch", "drift"),
		do(0, "paused: lunch", "apply -f DECLARED --yes"),
		do(0, "", "apply -f DECLARED --yes --reset-pauses"),
		ask(2, "1 to delete|DELETE", "plan -f FEW --prune"),
		do(1, "more than a fifth of the live jobs", "apply -f FEW --prune --yes"),
		do(1, "more than a fifth of the live jobs", "plan -f FEW --prune --out PLANFILE"),
		do(1, "declares no job, and --prune would delete all there are", "apply -f EMPTY --prune --yes"),
		do(1, "more than a fifth of the live jobs", "apply -f EMPTY --prune --yes --allow-empty"),
		do(1, "step", "apply -f WRONG"),
		do(1, "no such file", "plan -f MISSING"),
		prepared(startForeign, do(2, "not ours", "plan -f BLOCKED")),
		do(1, "1 job is blocked and unchanged", "apply -f BLOCKED --yes"),
		do(2, "saved as PLANFILE", "plan -f EDITED --out PLANFILE"),
		do(0, "0 created, 1 updated, 0 deleted", "apply PLANFILE"),
		do(1, "has changed since: take_steps.always-NAME; plan again", "apply PLANFILE"),
		prepared(planInProcess, ask(2, "1 to update|UPDATE", "plan -f DECLARED")),
		do(0, "1 updated", "apply INPROCESS"),
		do(0, "2 deleted", "apply -f EMPTY --prune --yes --allow-empty --allow-mass-prune --parallel 1"),
		ask(0, "0 to create, 0 to update, 0 to delete, 0 blocked, 0 unchanged, 0 no longer declared|namespace", "plan -f EMPTY"),
	}
}

// planFiles writes the files of a side.
func planFiles(c *conformance, s *side) {
	const jobs = `
[jobs.take_steps.often-NAME]
spec = { steps = 1 }
recurring = { recur_every = "P1D" }

[jobs.take_steps.always-NAME]
spec = { steps = 2 }
continuous = { interval = "PT1H" }
`
	for word, text := range map[string]string{
		"DECLARED": jobs, "EMPTY": "", "FEW": jobs[:strings.Index(jobs, "[jobs.take_steps.always-")],
		"EDITED": strings.Replace(jobs, `"PT1H"`, `"PT2H"`, 1), "WRONG": "[jobs.take_steps.a]\nspec = { step = 1 }\none_shot = {}\n",
		"BLOCKED": jobs + "\n[jobs.take_steps.taken]\nspec = { steps = 1 }\none_shot = {}\n",
	} {
		s.values[word] = writeFile(c.T, "jobs.toml", strings.ReplaceAll(text, "NAME", s.values["NAME"]))
	}
	folder := c.TempDir()
	s.values["PLANFILE"], s.values["INPROCESS"], s.values["MISSING"] = filepath.Join(folder, "plan"), filepath.Join(folder, "inprocess"), filepath.Join(folder, "none")
}

// startForeign has a workflow that is not ours under the id of a job.
func startForeign(c *conformance, _ *side) {
	_, err := c.st.Dial(c.T).ExecuteWorkflow(c.Context(), sdk.StartWorkflowOptions{ID: foreign, TaskQueue: "others"}, "Others")
	require.NoError(c, err)
}

var foreign = contract.JobWorkflowID("take_steps.taken")

// planInProcess saves a plan that was made in process: it is that of the server.
func planInProcess(c *conformance, s *side) {
	require.NoError(c, c.st.Dial(c.T).TerminateWorkflow(c.Context(), foreign, "", "test"))
	c.sides[0].run(c.Context(), "plan", "-f", s.values["DECLARED"], "--out", s.values["INPROCESS"])
}

// jobSteps work with jobs of each side, which are applied first.
func jobSteps() []step {
	return []step{
		prepared(applyJobs, ask(0, "take_steps.loop-NAME", "jobs list --owner user:NAME")),
		ask(0, "take_steps.daily-NAME", "jobs list --tag side=NAME --status scheduled --mode recurring"),
		ask(0, "No job found|jobs", "jobs list --owner user:nobody"),
		ask(0, "\nNext|nextStart", "jobs describe take_steps.daily-NAME"),
		ask(0, "completed", "jobs describe take_steps.once-NAME"),
		ask(0, "waiting", "jobs describe take_steps.loop-NAME"),
		do(0, `recurring = { recur_every = "P1D"`, "jobs describe take_steps.daily-NAME --toml -o table"),
		do(0, "in ", "jobs next take_steps.daily-NAME -n 3"),
		ask(0, "take_steps.daily-NAME", "upcoming --within PT24H --owner user:NAME --limit 1"),
		do(0, "paused", "jobs pause take_steps.daily-NAME --reason lunch"),
		do(0, "it was paused already: lunch", "jobs pause take_steps.daily-NAME --reason tea"),
		ask(2, "paused: lunch; also: tea|also: tea", "drift"),
		do(0, "resumed", "jobs resume take_steps.daily-NAME"),
		do(0, "it is not paused", "jobs resume take_steps.daily-NAME"),
		ask(0, "0 jobs have drifted|{", "drift"),
		do(0, "take_steps.loop-NAME", "jobs restart take_steps.loop-NAME"),
		do(0, "stop requested", "jobs stop take_steps.loop-NAME --reason enough --yes"),
		ask(0, "stopped: enough|enough", "jobs describe take_steps.loop-NAME"),
		do(0, "take_steps.loop-NAME", "jobs restart take_steps.loop-NAME"),
		do(1, "does not run", "jobs stop take_steps.once-NAME --yes"),
		do(0, "take_steps.daily-NAME", "jobs skip-next take_steps.daily-NAME --by NAME"),
		do(1, "add --yes to start 2 runs", "jobs backfill take_steps.daily-NAME --from 2026-03-01T00:00:00Z --to 2026-03-02T12:00:00Z"),
		do(0, "take_steps.daily-NAME", "jobs backfill take_steps.daily-NAME --from 2026-03-01T00:00:00Z --to 2026-03-02T12:00:00Z --yes"),
		do(1, "take_steps.none", "jobs trigger take_steps.once-NAME take_steps.none --yes"),
		ask(0, "scheduled", "jobs describe take_steps.daily-NAME"),
		do(0, "take_steps.daily-NAME", "jobs trigger take_steps.daily-NAME"),
		ask(0, "clitest@", "workers"),
		prepared(func(c *conformance, s *side) {
			s.values["SERVICE"] = regexp.MustCompile(`clitest@\S+`).FindString(c.sides[0].ok(c.T, "workers"))
		}, ask(0, "serving", "workers describe SERVICE")),
	}
}

func applyJobs(c *conformance, s *side) {
	file := writeFile(c.T, "jobs.toml", strings.ReplaceAll(`
[jobs.take_steps.daily-NAME]
spec = { steps = 2 }
owner = "user:NAME"
tags = { side = "NAME" }
recurring = { recur_every = "P1D", offset = "PT0S" }

[jobs.take_steps.once-NAME]
spec = { steps = 2 }
owner = "user:NAME"
one_shot = {}

[jobs.take_steps.fails-NAME]
spec = { steps = 2, fail = true }
owner = "user:NAME"
max_retry_count = 0
one_shot = {}

[jobs.take_steps.line-NAME]
spec = { steps = 2 }
owner = "user:NAME"
queued = { queue = "declared-NAME" }

[jobs.take_steps.loop-NAME]
spec = { steps = 2 }
owner = "user:NAME"
continuous = { interval = "PT1H" }

[jobs.nobody_serves.loop-NAME]
spec = { steps = 2 }
continuous = { interval = "PT1H" }
`, "NAME", s.values["NAME"]))
	c.sides[0].ok(c.T, "apply", "--yes", "-f", file)
	s.values["GATE"] = filepath.Join(c.TempDir(), "gate")
}

func runSteps() []step {
	const (
		oneStep = ` --spec {"steps":1}`
		gated   = ` --spec {"steps":1,"gate":"GATE"} --detach`
	)
	return []step{
		do(0, "all steps taken", "run take_steps.line-NAME"),
		do(0, "all steps taken", "run take_steps.once-NAME"),
		do(1, "told to fail", "run take_steps.fails-NAME"),
		do(0, "started", "run take_steps.once-NAME --detach"),
		do(0, "all steps taken", "run --type TakeSteps --key adhoc-NAME"+oneStep),
		do(2, "--station is missing", "import none.dat --organization demo"),
		do(1, "none.dat: no such file", "import none.dat --organization demo --station angelo"),
		do(2, "ExportDatastreams", "export --organization demo --location common1 --start 2026-03-01T00:00:00Z --end 2026-03-02T00:00:00Z"),
		do(0, "has completed already", "run --type TakeSteps --key adhoc-NAME"+oneStep),
		do(0, "it has completed already", "run --type TakeSteps --key adhoc-NAME --detach"+oneStep),
		ask(0, "all steps taken", "runs describe take_steps.adhoc-NAME"),
		ask(0, "told to fail", "runs describe job/take_steps.fails-NAME"),
		ask(0, "take_steps.line-NAME", "runs list --owner user:NAME --status completed --mode queued"),
		ask(0, "take_steps.fails-NAME", "runs list --job take_steps.fails-NAME"),
		ask(0, "take_steps.fails-NAME", "runs list --job take_steps.fails-NAME --error-class Told"),
		ask(0, "No run found|{", "runs list --job take_steps.fails-NAME --failure 0123456789ab"),
		see(0, "told to fail", "runs failures"),
		ask(0, "missed|endTime", "runs list --missed --job take_steps.daily-NAME"),
		ask(0, "keeps no logs|keeps no logs", "runs logs take_steps.once-NAME"),
		do(0, "take_steps.fails-NAME", "runs retry take_steps.fails-NAME"),
		do(1, "take_steps.once-NAME", "runs retry take_steps.once-NAME --yes"),
		do(0, "started", "run --type TakeSteps --key cancel-NAME"+gated),
		do(0, "take_steps.cancel-NAME", "runs cancel take_steps.cancel-NAME --yes"),
		ask(0, "canceled after|STATUS_CANCELED", "runs describe take_steps.cancel-NAME"),
		do(0, "stop requested", "runs cancel take_steps.cancel-NAME --yes"), // The request that it has.
		do(1, "it has ended already: it is completed", "runs cancel take_steps.adhoc-NAME --yes"),
		do(0, "started", "run --type TakeSteps --key end-NAME"+gated),
		do(0, "take_steps.end-NAME", "runs terminate take_steps.end-NAME --yes"),
		do(1, "it has ended already: it is terminated", "runs terminate take_steps.end-NAME --yes"),
		do(0, "no run", "runs cancel --owner user:none --yes"),
		do(1, "take_steps.daily-NAME", "run take_steps.daily-NAME --in PT1H"),
		do(1, "no worker answers within 15s", "run nobody_serves.loop-NAME"),
	}
}

func queueSteps() []step {
	const enqueue = "queues enqueue line-NAME --type TakeSteps --max-retry-count 0 "
	return []step{
		prepared(func(c *conformance, s *side) { // An alert of them comes whenever it comes.
			terminate(c.T, c.st, "nobody_serves.loop-"+s.values["NAME"])
		}, do(0, "on failure halt", "queues set line-NAME --on-failure halt")),
		do(0, "paused", "queues pause line-NAME --reason lunch"),
		do(0, "it was paused already: lunch", "queues pause line-NAME --reason tea"),
		do(0, "take_steps.broken-NAME", enqueue+`--key broken-NAME --spec {"steps":1,"fail":true}`),
		prepared(func(c *conformance, s *side) {
			var items strings.Builder
			for k := range 120 { // More than one request has.
				fmt.Fprintf(&items, `{"key": "item-%03d-%s", "spec": {"steps": 1}}`+"\n", k, s.values["NAME"])
			}
			s.values["ITEMS"] = writeFile(c.T, "items", items.String())
		}, do(0, "item-119-NAME", enqueue+"--file ITEMS")),
		do(0, "the next one of queue line-NAME", "queues move line-NAME take_steps.item-099-NAME"),
		do(0, "removed from queue line-NAME", "queues cancel line-NAME take_steps.item-003-NAME --yes"),
		do(1, "take_steps.item-003-NAME is not in queue", "queues cancel line-NAME take_steps.item-003-NAME --yes"),
		do(1, "take_steps.none", "queues move line-NAME take_steps.none"),
		do(1, "add --yes to purge", "queues purge line-NAME"),
		do(0, "115 items removed", "queues purge line-NAME --from 7 --yes"),
		ask(0, "take_steps.item-002-NAME", "queues peek line-NAME --from 3 --limit 20"),
		ask(0, "paused", "queues describe line-NAME --limit 5"),
		do(0, "resumed", "queues resume line-NAME"),
		ask(0, "halted", "queues describe line-NAME"),
		ask(0, "line-NAME", "queues list"),
		ask(0, "line-NAME", "alerts list"),
		do(0, "", "alerts silence queue-halted/line-NAME --for PT1H"),
		prepared(func(c *conformance, s *side) {
			for _, silence := range answered[jobsv1.ListSilencesResponse](c.T, c.sides[0].console, "alerts", "silences").GetSilences() {
				if silence.GetObject() == "line-"+s.values["NAME"] {
					s.values["SILENCE"] = silence.GetName()
				}
			}
		}, ask(0, "line-NAME", "alerts silences")),
		see(0, "line-NAME", "top"),
		do(0, "", "alerts unsilence SILENCE"),
		do(1, "", "alerts unsilence SILENCE"),
		do(0, "failed item skipped", "queues skip line-NAME --yes"),
		do(1, "", "queues skip line-NAME --yes"),
		ask(0, "Waiting 0|completed", "queues describe line-NAME"),
		do(0, "It refuses items until it is resumed", "queues drain line-NAME --yes"),
		do(1, "is being drained", enqueue+`--key late-NAME --spec {"steps":1}`),
		do(0, "resumed", "queues resume line-NAME"),
		do(0, "unchanged", "queues resume line-NAME"),
		do(0, "line-NAME", "queues recover line-NAME"),
		ask(0, "take_steps.broken-NAME", "queues dead list line-NAME"),
		do(1, "has no dead letter of job take_steps.none", "queues dead retry line-NAME take_steps.none"),
		do(0, "take_steps.broken-NAME", "queues dead retry line-NAME take_steps.broken-NAME"),
		ask(0, "halted", "queues describe line-NAME"),
		do(0, "failed item skipped", "queues skip line-NAME --yes"),
		do(0, "dropped", "queues dead drop line-NAME --all --yes"),
		prepared(func(c *conformance, s *side) {
			require.NoError(c, c.st.Dial(c.T).TerminateWorkflow(c.Context(), contract.QueueWorkflowID("line-"+s.values["NAME"]), "", "by mistake"))
		}, ask(0, "ended|terminated", "queues describe line-NAME")),
		do(1, "recover", "queues pause line-NAME"),
		do(0, "line-NAME", "queues recover line-NAME"),
	}
}

func pipelineSteps() []step {
	const bookmark = "extract_campbell_scientific_ldmp.NAME"
	return []step{
		prepared(quarantined, ask(0, "RefusedPoint", "quarantine list --location held-NAME --limit 2")),
		ask(0, "RefusedPoint", "quarantine list --location held-NAME --oldest-first --limit 3"),
		ask(0, "BadRecord", "quarantine list --organization held-NAME --summary"),
		ask(0, "No item found|items", "quarantine list --location nowhere"),
		ask(0, "no record|BadRecord", "quarantine show BAD"),
		do(0, "<", "quarantine show BAD --body"),
		do(1, "", "quarantine show 999999999"),
		do(1, "", "quarantine replay BAD --yes"),
		do(1, "", "quarantine replay 999999999 --yes"),
		do(1, "", "quarantine drop BAD 999999999 --yes"),
		do(0, "1 item replayed", "quarantine replay FIRST --yes"),
		do(1, "add --yes", "quarantine drop --location held-NAME"),
		do(2, "", "quarantine drop"),
		do(0, "2 items dropped", "quarantine drop --location held-NAME --yes"),
		do(0, "set to 2026-03-04", "bookmarks set "+bookmark+" oak 2026-03-04T00:00:00Z"),
		do(1, "add --yes to move the bookmark", "bookmarks set "+bookmark+" oak 2026-03-03T00:00:00Z"),
		do(0, "set to 2026-03-03", "bookmarks set "+bookmark+" oak 2026-03-03T00:00:00Z --yes"),
		ask(0, "oak", "bookmarks list "+bookmark),
		ask(0, "", "changes list --verb nothing"),
		do(0, "", "archive audit"),
		ask(0, "", "archive list"),
		do(0, "", "archive cat --organization NAME"),
		do(1, "nowhere", "loads nowhere"),
		do(1, "nowhere", "loads skip nowhere --yes"),
		prepared(blockedLoad, ask(0, "is blocked by message|heldSequence", "loads held-NAME")),
		do(0, "is in quarantine", "loads skip held-NAME --yes"),
	}
}

// quarantined puts items of the side into quarantine.
func quarantined(c *conformance, s *side) {
	location := "held-" + s.values["NAME"]
	putPoints(c.T, c.streams, location, "RefusedPoint", 3)
	_, err := c.streams.Quarantine(c.Context(), []pipeline.Quarantined{{
		Stage: pipeline.StageExtract, Operation: "test", Name: location + ".csi", Class: "BadRecord", Reason: "no record", Job: "e", Body: []byte("<\x00\xff"),
	}})
	require.NoError(c, err)
	items := itemsOf(c.T, c.sides[0].console, c.st, "--organization", location)
	s.values["BAD"] = fmt.Sprint(items[0].GetId())
	items = itemsOf(c.T, c.sides[0].console, c.st, "--location", location)
	s.values["FIRST"] = fmt.Sprint(items[0].GetId())
}

// blockedLoad has the server lose the retention policy of a database, so that it refuses a message.
func blockedLoad(c *conformance, s *side) {
	name := s.values["NAME"]
	for _, statement := range []string{`CREATE DATABASE "refused-` + name + `" WITH NAME "gone"`, `DROP RETENTION POLICY "gone" ON "refused-` + name + `"`} {
		_, err := influx.Query(c.Context(), influx.Config{URL: c.st.Influx}, "", statement)
		require.NoError(c, err)
	}
	_, err := c.streams.Publish(c.Context(), []pipeline.Outgoing{{Subject: pipeline.PrepSubject(pipeline.OperationLive, "held-"+name), Body: fmt.Appendf(nil,
		`{"context":{"station":"s"},"payload":{"options":{"database":"refused-%s"},"points":[{"measurement":"m","fields":{"v":1},"time":1}]}}`, name)}})
	require.NoError(c, err)
	keepLoading(c.T, c.st, c.streams, "held-"+name)
}

// organization is one of the platform, which reverse-sync and integrations work with.
const organization = "5a8f00000000000000000001"

func (c *conformance) put(resource *platformv1.Resource) {
	_, err := platformtest.Put(c.Context(), platform.Config{URL: c.st.Platform.URL, Token: c.st.Platform.Token}, resource, "")
	require.NoError(c, err)
}

func (c *conformance) putOrganization(id, name, slug string) {
	c.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{
		Organization: &platformv1.Organization{Id: id, Name: name, Slug: slug, IsEnabled: true},
	}})
}

func metadataSteps() []step {
	return []step{
		prepared(func(c *conformance, _ *side) {
			c.putOrganization(organization, "Erica", "erica")
			c.sides[0].ok(c.T, "reverse-sync", "run")
			c.putOrganization(organization, "Renamed", "erica")
		}, do(2, "~ organization "+organization+"  Renamed|Renamed|organization", "reverse-sync plan")),
		do(0, "~ organization "+organization+"  Renamed", "reverse-sync run"),
		do(0, "organization", "reverse-sync plan"),
		do(0, "No conflict found.|conflicts", "reverse-sync conflicts"),
		do(1, "there is no conflict about x", "reverse-sync run --overwrite x"),
	}
}

// imageSteps find nothing: the store has no such prefix.
func imageSteps() []step {
	return []step{
		do(0, "0 objects; removed 0 objects (0 B), queued 0 jobs.|objects", "images list --prefix none"),
		do(0, "0 objects|objects", "images gc --prefix none --gone"),
		do(0, "0 objects|objects", "images remake --prefix none --ladder responsive --yes"),
	}
}

func configSteps() []step {
	return []step{
		prepared(putConfig, ask(0, "far-NAME", "integrations list")),
		ask(0, "Nothing is wrong with config far-NAME|{", "integrations check far-NAME"),
		ask(0, "Version", "integrations describe far-NAME"),
		ask(1, "there is no integration config gone", "integrations describe gone"),
	}
}

func integrationSteps() []step {
	return []step{
		do(0, "is enabled", "integrations enable far-NAME"),
		ask(0, "1 to create|create", "reconcile --dry-run"),
		do(0, "Reconciled: 1 created, 0 updated, 0 deleted", "reconcile"),
		do(0, "is disabled", "integrations disable far-NAME"),
		ask(0, "1 to delete|delete", "reconcile --dry-run"),
		do(0, "Reconciled: 0 created, 0 updated, 1 deleted", "reconcile"),
	}
}

// putConfig puts the config of a side.
func putConfig(c *conformance, s *side) {
	spec, err := structpb.NewStruct(map[string]any{"steps": 1})
	require.NoError(c, err)
	c.put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationType{IntegrationType: &platformv1.IntegrationType{
		Id: "remote", Name: "Remote", Direction: platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND,
		Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_ORGANIZATION,
		Jobs: []*platformv1.IntegrationJob{{JobType: "TakeSteps", Spec: spec, Trigger: &platformv1.JobTrigger{
			Mode: &platformv1.JobTrigger_Continuous{Continuous: &platformv1.ContinuousMode{Interval: durationpb.New(time.Minute)}},
		}}},
	}}})
	c.put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: &platformv1.IntegrationConfig{
		Id: "far-" + s.values["NAME"], TypeId: "remote", OrganizationId: organization, Name: "Far", OperationMode: platformv1.OperationMode_OPERATION_MODE_LIVE,
	}}})
}

func teardownSteps() []step {
	return []step{
		prepared(func(c *conformance, s *side) {
			s.values["ORGANIZATION"] = fmt.Sprintf("5a8f0000000000000000001%d", slices.Index(names, s.values["NAME"]))
			c.putOrganization(s.values["ORGANIZATION"], "Gone", "gone-"+s.values["NAME"])
		}, do(0, "", "teardown plan gone-NAME")),
		do(0, "", "teardown start gone-NAME --grace P1D --yes"),
		ask(0, "gone-NAME", "teardown describe gone-NAME"),
		do(0, "gone-NAME", "teardown undo gone-NAME"),
		do(1, "", "teardown describe nowhere"),
	}
}

// startPlatformWorker runs the jobs of the platform.
func startPlatformWorker(c *conformance) {
	api, err := activities.ConnectPlatform(c.st.Getenv)
	require.NoError(c, err)
	store, err := activities.ConnectObjects(c.st.Getenv)
	require.NoError(c, err)
	at, err := places.FromEnv(c.st.Getenv)
	require.NoError(c, err)
	startOrchestrators(c.T, c.st, append(reversesync.Metadata(c.streams, c.st.Getenv), integration.ReconcileJobs(api), teardown.Organization(store, api, c.streams, at), effects.ReconcileImages(store, api, at))...)
}

// wrongSteps are commands that are refused, each for a reason of its own.
func wrongSteps() []step {
	steps := []step{
		ask(1, "there is no job take_steps.none", "jobs describe take_steps.none"),
		ask(1, "", "jobs next take_steps.none"),
		ask(1, "", "jobs next take_steps.loop-NAME"),
		ask(2, "Nope", "jobs list --type Nope"),
		ask(1, "", "jobs pause take_steps.once-NAME"),
		ask(1, "", "jobs skip-next take_steps.loop-NAME"),
		ask(1, "", "jobs backfill take_steps.daily-NAME --from PT1H --to 2099-01-01T00:00:00Z"),
		ask(1, "", "jobs stop take_steps.none --yes"),
		ask(1, "", "runs list --job take_steps.none"),
		ask(1, "", "runs list --missed --job take_steps.none"),
		ask(2, "", "runs list --type TakeStep"),
		ask(1, "there is no run of a job take_steps.none", "runs describe take_steps.none"),
		ask(1, "there is no run job/take_steps.none", "runs describe job/take_steps.none"),
		ask(1, "", "runs describe take_steps.once-NAME nonsense"),
		ask(1, "", "runs describe take_steps.loop-NAME"),
		ask(1, "", "runs cancel take_steps.none --yes"),
		ask(1, "", "runs terminate take_steps.once-NAME"),
		ask(1, "", "workers describe none"),
		ask(1, "", "run take_steps.none"),
		ask(2, "", "run --type Nope"),
		ask(1, "", `run --type TakeSteps --spec {"steps":0}`),
		ask(1, "exists already", `run --type TakeSteps --key daily-NAME --spec {"steps":1}`),
		ask(1, "", "queues enqueue none --job take_steps.none"),
		ask(1, "", `queues enqueue none --type TakeSteps --spec {"step":1}`),
		ask(2, "Nope", "queues enqueue none --type Nope --spec {}"),
	}
	for _, command := range []string{"describe none", "peek none", "pause none", "resume none", "skip none --yes", "drain none --yes", "recover none",
		"purge none --yes", "cancel none a.b --yes", "move none a.b", "dead list none", "dead drop none --all --yes"} {
		steps = append(steps, ask(1, "there is no queue none", "queues "+command))
	}
	return steps
}
