package endtoend_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// traces is all that the system leaves behind where people and programs can read it.
type traces struct {
	*bench
	workers []*stacktest.Process
	said    bytes.Buffer // by commands
}

// worker starts a worker whose log is looked at.
func (s *traces) worker(name string, env ...string) *stacktest.Process {
	s.Helper()
	w := s.bench.worker(name, env...)
	s.workers = append(s.workers, w)
	return w
}

// says runs a command of bin/starter, whether or not it succeeds.
func (s *traces) says(env []string, args ...string) answer {
	s.Helper()
	a := starter(s.T, append(s.st.Env(), env...), args...)
	fmt.Fprintf(&s.said, "%s\n%s\n%s\n", args, a.stdout, a.stderr)
	return a
}

// each gives all there is, by place. It ends the stack, so that its files are complete.
func (s *traces) each(look func(place string, content []byte)) {
	s.Helper()
	marshaled := func(place string, m proto.Message, err error) {
		require.NoError(s, err)
		content, err := proto.Marshal(m) // Payloads are in it as they are.
		require.NoError(s, err)
		look(place, content)
	}
	api := s.client.Temporal()
	var token []byte
	for {
		page, err := api.ListWorkflow(s.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: s.st.Namespace, NextPageToken: token})
		marshaled("list", page, err)
		for _, info := range page.GetExecutions() {
			id, run := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
			description, err := api.DescribeWorkflowExecution(s.Context(), id, run)
			marshaled("description", description, err)
			events := api.GetWorkflowHistory(s.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for events.HasNext() {
				event, err := events.Next()
				marshaled("history", event, err)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	schedules, err := api.ScheduleClient().List(s.Context(), temporal.ScheduleListOptions{})
	require.NoError(s, err)
	for schedules.HasNext() {
		entry, err := schedules.Next()
		require.NoError(s, err)
		description, err := api.WorkflowService().DescribeSchedule(s.Context(), &workflowservice.DescribeScheduleRequest{
			Namespace: s.st.Namespace, ScheduleId: entry.ID,
		})
		marshaled("schedule", description, err)
	}
	s.drain(s.workers...)
	for _, w := range s.workers {
		look("log", []byte(w.Output()))
	}
	look("command", s.said.Bytes())
	require.Zero(s, s.st.Stop())
	look("log of the servers", []byte(s.st.Log()))
	s.st.EachFile(s.T, func(server string, content []byte) { look("files of "+server, content) })
}

// talkative is a vendor or a database that refuses everything, and quotes the secret,
// beside a text.
func talkative(t *testing.T, text string) string {
	t.Helper()
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if _, password, ok := r.BasicAuth(); ok {
			given = password
		}
		said := "this is not known: " + given + " but " + text
		answer, _ := json.Marshal(map[string]string{"error": said, "message": said}) // strings always encode
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(answer)
	}))
	return server
}

// decoyOrganization is the id of the organization that tells the decoy.
const decoyOrganization = "5b0f155746a1b867a114e030"

// plant puts the decoy where a secret could get to: into a resource of the platform, and
// into a message.
func (s *traces) plant(decoy stacktest.Canary) {
	s.Helper()
	config := platform.Config{URL: s.st.Platform.URL, Token: s.st.Platform.Token}
	for _, r := range []*platformv1.Resource{
		{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
			Id: decoyOrganization, Name: "Demo", Slug: "demo", IsEnabled: true, Description: decoy.Value,
		}}},
		{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
			Id: "5b0f155746a1b867a114e041", OrganizationId: decoyOrganization, Name: "Ridge", Slug: "ridge", Database: "stored",
		}}},
	} {
		_, err := platformtest.Put(s.Context(), config, r, "")
		require.NoError(s, err)
	}
	nats := s.st.Pipeline(s)
	_, err := nats.JetStream().Publish(s.Context(), pipeline.RawSubject(pipeline.OperationTest, "demo", "decoy"),
		[]byte(base64.StdEncoding.EncodeToString([]byte("jobs:"+decoy.Value))))
	require.NoError(s, err)
}

// failing waits until further iterations of a continuous job have failed.
func (s *traces) failing(jobID string) {
	s.Helper()
	s.further("failed iterations of "+jobID, jobID, func(loop *contract.ContinuousState) int64 { return loop.Failed })
}

// succeeding waits until further iterations of a continuous job have succeeded.
func (s *traces) succeeding(jobID string) {
	s.Helper()
	s.further("iterations of "+jobID, jobID, func(loop *contract.ContinuousState) int64 {
		return loop.Iterations - loop.Failed - loop.Interrupted
	})
}

func (s *traces) further(what, jobID string, count func(*contract.ContinuousState) int64) {
	s.Helper()
	least := int64(-1)
	workertest.WaitLoop(s, s.client, jobID, what, func(loop *contract.ContinuousState) bool {
		if least < 0 {
			least = count(loop) + 2
		}
		return count(loop) >= least
	})
}

// look has commands show all that there is.
func (s *traces) look() {
	s.Helper()
	var jobs jobsv1.ListJobsResponse
	require.NoError(s, protojson.Unmarshal([]byte(s.says(nil, "jobs", "list", "--all", "-o", "json").stdout), &jobs))
	for _, j := range jobs.GetJobs() {
		s.says(nil, "jobs", "describe", j.GetId())
		s.says(nil, "jobs", "describe", "-o", "json", j.GetId())
	}
	var runs jobsv1.ListRunsResponse
	require.NoError(s, protojson.Unmarshal([]byte(s.says(nil, "runs", "list", "-o", "json").stdout), &runs))
	told := map[string]bool{} // Commands say the same of all runs of a job that ended alike.
	for _, run := range runs.GetRuns() {
		kind := fmt.Sprint(run.GetJobId(), run.GetStatus(), run.GetErrorClass())
		if told[kind] {
			continue
		}
		told[kind] = true
		workflowID, _, _ := strings.Cut(run.GetName(), "@")
		s.says(nil, "runs", "describe", workflowID)
		s.says(nil, "runs", "describe", "-o", "json", workflowID)
	}
	for _, command := range []string{"runs list", "queues list", "workers", "quarantine list", "loads", "drift", "upcoming"} {
		s.says(nil, strings.Fields(command)...)
	}
}

// TestSecretsStayOnTheWorkers has jobs and commands succeed and fail with secrets, and
// looks for these in all that is left behind. A decoy that was planted is found there.
func TestSecretsStayOnTheWorkers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	api, refused, vendor, influx, decoy := stacktest.NewCanary(t, "platform"), stacktest.NewCanary(t, "refused"),
		stacktest.NewCanary(t, "vendor"), stacktest.NewCanary(t, "influx"), stacktest.NewCanary(t, "decoy")
	s := &traces{bench: newBench(t, stacktest.StartOwn(t, "--platform-token", api.Value))}
	weather := stacktest.Serve(t, hobolinktest.NewHandler(hobolinktest.Options{Token: vendor.Value}))
	secrets := []string{"DENDRA_SECRET_VENDOR=" + vendor.Value, "DENDRA_SECRET_REFUSED=" + refused.Value, "DENDRA_SECRET_INFLUX=" + influx.Value}
	const nowhere = "http://127.0.0.1:1"
	quoting := talkative(t, decoy.Value)

	s.plant(decoy)
	s.worker("extract", secrets...)
	s.worker("load", secrets...)
	loaders := ""
	for location, url := range map[string]string{"stored": s.st.Influx, "quoted": quoting, "away": nowhere} {
		loaders += fmt.Sprintf(`
[jobs.live_load_influx_v1.%[1]s]
description = %[3]q
continuous = { interval = "PT1S" }
retry_backoff = { initial = "PT0.5S", max = "PT1S" }
spec = { location = "%[1]s", influx_url = %[2]q, username = "jobs", password = "secret://influx", iteration_duration = "PT1S" }
`, location, url, decoy.Value)
	}
	declare(s.bench, loaders+`
[jobs.reconcile_jobs.main]
continuous = { interval = "PT1S" }
retry_backoff = { initial = "PT0.5S", max = "PT1S" }
spec = { window = "PT1S" }

[jobs.side_effects_subscribe_to_changes.main]
continuous = { interval = "PT1S" }
retry_backoff = { initial = "PT0.5S", max = "PT1S" }
spec = { iteration_duration = "PT1S" }
`)
	extract := func(key, location, url, token string) answer {
		return s.says(nil, "run", "--type", "ExtractHoboTimeFrame", "--key", key, "--max-retry-count", "0", "--spec", fmt.Sprintf(
			`{"base_url": %q, "token": "secret://%s", "organization": "demo", "location": %q, "backfill": "PT6H", "overlap": "PT1H",
			  "loggers": [{"serial": %q, "station": "Ridge"}]}`, url, token, location, hobolinktest.DefaultLoggers()[0]))
	}
	discover := func(key, url string) answer {
		return s.says(nil, "run", "--type", "DiscoverAndSyncTables", "--key", key, "--max-retry-count", "0", "--spec", fmt.Sprintf(
			`{"organization_id": %q, "location": "stored", "influx_url": %q, "username": "jobs", "password": "secret://influx"}`,
			decoyOrganization, url))
	}
	for _, location := range []string{"stored", "quoted", "away"} {
		require.Zero(t, extract(location, location, weather, "vendor").code, s.said.String())
	}
	require.Equal(t, 1, extract("refused", "stored", weather, "refused").code)
	require.Contains(t, extract("quoting", "stored", quoting, "refused").stderr, "this is not known: Bearer [redacted]")
	require.Equal(t, 1, extract("nowhere", "stored", nowhere, "vendor").code)
	require.Equal(t, 1, extract("decoy", "stored", nowhere+"/"+url.PathEscape(decoy.Value), "vendor").code) // it is in the spec
	s.succeeding("live_load_influx_v1.stored")
	s.failing("live_load_influx_v1.quoted")
	s.failing("live_load_influx_v1.away")

	// The platform with its token, with another one, and not there.
	for _, phase := range []struct {
		name string
		env  []string
	}{
		{"good", nil},
		{"refused", []string{"DENDRA_PLATFORM_TOKEN=" + refused.Value, "DENDRA_RELEASE2_TOKEN=" + refused.Value}},
		{"away", []string{"DENDRA_PLATFORM_URL=" + nowhere, "DENDRA_RELEASE2_URL=" + nowhere}},
	} {
		backend := s.bench.worker("backend", append(phase.env, secrets...)...)
		wait, code := s.failing, 1
		if phase.name == "good" {
			wait, code = s.succeeding, 0
			require.Equal(t, 1, discover("quoted", quoting).code)
		}
		require.Equal(t, code, discover(phase.name, s.st.Influx).code, s.said.String())
		require.Equal(t, code, s.says(nil, "run", "--type", "ReverseSyncOrganizationMetadata", "--key", phase.name, "--max-retry-count", "0").code, s.said.String())
		wait("reconcile_jobs.main")
		wait("side_effects_subscribe_to_changes.main")
		s.says(phase.env, "reconcile", "--dry-run")
		s.says(phase.env, "reverse-sync", "plan")
		if phase.name == "away" {
			s.look()
		}
		s.drain(backend)
		s.said.WriteString(backend.Output())
	}

	seen := map[string]map[string]bool{} // forms of the decoy by place
	s.each(func(place string, content []byte) {
		for _, secret := range []stacktest.Canary{api, refused, vendor, influx} {
			require.Empty(t, secret.In(content), "the secret %s is in: %s", secret.Name, place)
		}
		for _, form := range decoy.In(content) {
			if seen[place] == nil {
				seen[place] = map[string]bool{}
			}
			seen[place][form] = true
		}
	})
	for place, form := range map[string]string{
		"list": "JSON", "description": "JSON", "history": "plain", "log": "plain", "command": "URL path",
		"files of temporal": "plain", "files of platform": "plain", "files of nats": "base64, shifted by 2",
	} {
		require.True(t, seen[place][form], "the decoy that was planted is not found in: %s, as %s; it is in %v", place, form, seen)
	}
}
