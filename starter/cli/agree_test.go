package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/starter/top"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// kind is a number of jobs that are alike.
type kind struct {
	name  string
	count int
	// toml are the keys of such a job. GATE stands for a file that keeps runs under way, QUEUE
	// for the queue of its kind.
	toml string
	// verbs bring it into its state; status and reason are what is said of it then.
	verbs          []*verbs.Verb
	status, reason string
}

const (
	daily    = "recurring = { recur_every = \"P1D\" }\n"
	always   = "continuous = { interval = \"PT1H\" }\nretry_backoff = { initial = \"PT1H\", max = \"PT1H\" }\n"
	fine     = "spec = { steps = 1 }\n"
	gated    = "spec = { steps = 1, gate = \"GATE\" }\n"
	fails    = "spec = { steps = 1, fail = true }\nmax_retry_count = 0\n"
	unserved = "no live worker serves NobodyServes"
	toldFail = "Told: told to fail"
	forATest = "for a test"
	inQueue  = "queued = { queue = \"QUEUE\" }\n"
	oneShot  = "one_shot = {}\n"
	heldBack = "recurring = { recur_every = \"PT2S\", pause_after_failures = 1, retry_every = \"PT1H\" }\n"
	eachTwoS = "recurring = { recur_every = \"PT2S\" }\n"
)

// kinds are jobs of every mode and state.
var kinds = []kind{
	{"scheduled", 9, fine + daily, nil, "scheduled", ""},
	{"ran", 5, fine + daily, []*verbs.Verb{verbs.RunJob}, "scheduled", ""},
	{"runs", 8, gated + daily, []*verbs.Verb{verbs.RunJob}, "running", ""},
	{"unserved", 62, fine + daily, []*verbs.Verb{verbs.RunJob}, "waiting", unserved},
	{"fails", 8, fails + daily, []*verbs.Verb{verbs.RunJob}, "failing", toldFail},
	{"paused", 8, fine + daily, []*verbs.Verb{verbs.PauseJob}, "paused", forATest},
	{"paused-fails", 8, fails + daily, []*verbs.Verb{verbs.RunJob, verbs.PauseJob}, "paused", forATest},
	{"paused-runs", 4, gated + daily, []*verbs.Verb{verbs.RunJob, verbs.PauseJob}, "paused", forATest},
	{"held", 2, fails + heldBack, nil, "failing", toldFail},
	{"missed", 2, gated + eachTwoS, nil, "running", ""},
	{"loop-runs", 4, gated + always, nil, "running", ""},
	{"loop-rests", 5, fine + always, nil, "running", ""},
	{"loop-unserved", 25, fine + always, nil, "waiting", unserved},
	{"loop-fails", 4, "spec = { steps = 1, fail = true }\n" + always, nil, "failing", toldFail},
	{"loop-paused", 4, gated + always, []*verbs.Verb{verbs.PauseJob}, "paused", forATest},
	{"loop-stopped", 4, gated + always, []*verbs.Verb{verbs.StopJob}, "stopped", forATest},
	{"item-runs", 1, gated + inQueue, nil, "running", ""},
	{"item-waits", 5, fine + inQueue, nil, "waiting", ""},
	{"once-runs", 4, gated + oneShot, nil, "running", ""},
	{"once-unserved", 20, fine + oneShot, nil, "waiting", unserved},
	{"once-done", 4, fine + oneShot, nil, "completed", ""},
	{"once-failed", 4, fails + oneShot, nil, "failed", toldFail},
	{"once-canceled", 4, gated + oneShot, []*verbs.Verb{verbs.StopJob}, "stopped", ""},
	{"once-terminated", 4, gated + oneShot, []*verbs.Verb{verbs.TerminateRun}, "terminated", ""},
}

// ids are those of the jobs of a kind.
func (k kind) ids() []string {
	prefix := "take_steps."
	if strings.HasSuffix(k.name, "unserved") {
		prefix = "nobody_serves."
	}
	var ids []string
	for n := range k.count {
		ids = append(ids, fmt.Sprintf("%s%s-%02d", prefix, k.name, n))
	}
	return ids
}

// starts reports whether a job of the kind has a next start.
func (k kind) starts() bool {
	return strings.Contains(k.toml, "recurring") && k.status != "paused"
}

// said is what a viewer says of a job: of its next start, in how many hours it is.
type said struct{ status, reason, next string }

// untold is the next start where a viewer is not asked for it.
const untold = "?"

// TestAllViewersAgreeOnJobs has two hundred jobs in every mode and state, of which more are under
// way than are looked at one by one. Lists, descriptions, the page, the screen and alerts say the
// same of each. So many jobs need the stack for themselves.
func TestAllViewersAgreeOnJobs(t *testing.T) { //nolint:paralleltest // The others would wait in vain.
	w := newViewers(t)
	w.bring(t)
	require.GreaterOrEqual(t, len(w.want), 200)
	stacktest.WaitFor(t, "all lists to agree", func() (bool, error) {
		next := map[string]string{} // As the first list has it.
		for _, view := range []struct {
			name string
			read func(*testing.T) map[string]said
		}{
			{"ListJobs", w.listed}, {"jobs list -o json", w.list}, {"jobs list", w.table}, {"the overview", w.overview}, {"the page", w.page}, {"top", w.top},
		} {
			all := view.read(t)
			if len(all) != len(w.want) {
				return false, fmt.Errorf("%s has %d jobs of %d", view.name, len(all), len(w.want))
			}
			for id, k := range w.want {
				got := all[id]
				if view.name == "ListJobs" {
					if next[id] = got.next; (got.next != "-") != k.starts() {
						return false, fmt.Errorf("the next start of %s is %s", id, got.next)
					}
				}
				if got.next == untold {
					got.next = next[id]
				}
				if want := (said{k.status, k.reason, next[id]}); got != want {
					return false, fmt.Errorf("%s says %+v of %s: want %+v", view.name, got, id, want)
				}
			}
		}
		return true, nil
	})
	w.describe(t)
	w.runsAgree(t)
	w.verbsAgree(t)
	w.missedAgree(t)
}

// viewers are all that show jobs, over one namespace.
type viewers struct {
	console
	clients *api.Clients
	url     string // of the page
	now     time.Time
	want    map[string]kind // by id
	gate    string
}

func newViewers(t *testing.T) *viewers {
	t.Helper()
	st := stacktest.StartNamespace(t)
	startWorker(t, st)
	w := &viewers{
		console: console{address: st.Temporal, namespace: st.Namespace}, want: map[string]kind{},
		now: time.Now().Add(-time.Hour).Truncate(time.Second), gate: filepath.Join(t.TempDir(), "gate"),
	}
	t.Cleanup(func() { require.NoError(t, os.WriteFile(w.gate, nil, 0o600)) })
	server := api.New(api.Config{
		Client: client.New(st.Dial(t), st.Namespace), Types: testTypes(), Logger: slog.New(slog.DiscardHandler),
		Reads: readmodel.Config{
			Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace, Logger: slog.New(slog.DiscardHandler)},
			Always:   true, CallsPerSecond: 100,
		},
	})
	t.Cleanup(server.Close)
	w.clients = server.InProcess()
	shown := httptest.NewServer(page.New(page.Config{API: w.clients}))
	t.Cleanup(shown.Close)
	w.url = shown.URL
	return w
}

// bring applies all jobs, and does to them what brings them into their states.
func (w *viewers) bring(t *testing.T) {
	t.Helper()
	w.ok(t, "queues", "set", "item-waits", "--on-failure", "halt")
	w.ok(t, "queues", "pause", "item-waits")
	var file strings.Builder
	for _, k := range kinds {
		for _, id := range k.ids() {
			w.want[id] = k
			fmt.Fprintf(&file, "[jobs.%s]\n%s\n", id, strings.NewReplacer("GATE", w.gate, "QUEUE", k.name).Replace(k.toml))
		}
	}
	w.run(t.Context(), "apply", "-f", writeFile(t, "jobs.toml", file.String()), "--yes")
	for _, k := range kinds {
		for _, v := range k.verbs {
			w.each(t, v, k.ids())
		}
	}
}

// each does a verb to each of some jobs, or to their latest runs, and again while Temporal is slow.
func (w *viewers) each(t *testing.T, v *verbs.Verb, ids []string) {
	t.Helper()
	for n, answer := range verbs.Each(t.Context(), len(ids), func(ctx context.Context, n int) (verbs.Done, error) {
		args := verbs.To(ids[n])
		if args.Reason = forATest; v.Kind == verbs.KindRun {
			args.Names = []string{"job/" + ids[n]}
		}
		for {
			done, err := v.Do(ctx, w.clients.Calls, args)
			if connect.CodeOf(err) != connect.CodeUnavailable || ctx.Err() != nil {
				return done, err
			}
		}
	}, nil) {
		require.NoError(t, answer.Err, "%s %s", v.Name, ids[n])
	}
}

// in is in how many hours a time is.
func (w *viewers) in(at *timestamppb.Timestamp) string {
	if at == nil {
		return "-"
	}
	return fmt.Sprintf("%dh", int(at.AsTime().Sub(w.now).Hours()))
}

// word is the status of a job in lower case.
func word(status jobsv1.JobStatus) string {
	return strings.ToLower(strings.TrimPrefix(status.String(), "JOB_STATUS_"))
}

func (w *viewers) said(jobs []*jobsv1.Job) map[string]said {
	all := map[string]said{}
	for _, j := range jobs {
		all[j.GetId()] = said{word(j.GetState().GetStatus()), j.GetState().GetReason(), w.in(j.GetState().GetNextStartTime())}
	}
	return all
}

func (w *viewers) listed(t *testing.T) map[string]said {
	t.Helper()
	answer, err := w.clients.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1000})
	require.NoError(t, err)
	return w.said(answer.GetJobs())
}

func (w *viewers) list(t *testing.T) map[string]said {
	t.Helper()
	return w.said(answered[jobsv1.ListJobsResponse](t, w.console, "jobs", "list", "--all").GetJobs())
}

func (w *viewers) table(t *testing.T) map[string]said {
	t.Helper()
	all := map[string]said{}
	for _, row := range rows(w.ok(t, "jobs", "list", "--all")) {
		all[row["JOB"]] = said{row["STATUS"], strings.TrimPrefix(row["NOTE"], "queue "+w.want[row["JOB"]].name), untold}
	}
	return all
}

func (w *viewers) overview(t *testing.T) map[string]said {
	t.Helper()
	all := map[string]said{}
	for _, j := range w.snapshot(t).GetJobs() {
		all[j.GetId()] = said{word(j.GetStatus()), j.GetReason(), w.in(j.GetNextStartTime())}
	}
	return all
}

func (w *viewers) snapshot(t *testing.T) *jobsv1.Overview {
	t.Helper()
	answer, err := w.clients.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{Runs: 100})
	require.NoError(t, err)
	return answer.GetOverview()
}

func (w *viewers) top(t *testing.T) map[string]said {
	t.Helper()
	var text bytes.Buffer
	_, err := top.Write(&text, w.snapshot(t), w.now, time.UTC, 0, true)
	require.NoError(t, err)
	_, table, _ := strings.Cut(text.String(), "\nJOBS\n")
	table, _, _ = strings.Cut(table, "\n\n")
	all := map[string]said{}
	for _, row := range rows(table) {
		next := row["NEXT"]
		if next == "" {
			next = "-"
		}
		all[row["JOB"]] = said{row["STATUS"], row["NOTE"], next}
	}
	return all
}

// rows are those of a table, by its columns; a dash is nothing.
func rows(table string) []map[string]string {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	columns := regexp.MustCompile(`\S+( \S+)*`).FindAllStringIndex(lines[0], -1)
	var all []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for n, at := range columns {
			end := len(line)
			if n+1 < len(columns) {
				end = columns[n+1][0]
			}
			if cell := strings.TrimSpace(line[at[0]:end]); cell != "-" {
				row[lines[0][at[0]:at[1]]] = cell
			}
		}
		all = append(all, row)
	}
	return all
}

var gridRow = regexp.MustCompile(`(?s)<tr id="j-([^"]+)" class="s-([^"]+)".*?<td(?: title="([^"]*)")?>.*?</tr>`)

func (w *viewers) page(t *testing.T) map[string]said {
	t.Helper()
	all := map[string]said{}
	for _, row := range gridRow.FindAllStringSubmatch(w.get(t, "/?ended=show&items=show"), -1) {
		next := "-"
		if at := regexp.MustCompile(`datetime="([^"]+)"`).FindStringSubmatch(row[0]); at != nil {
			is, err := time.Parse(time.RFC3339, at[1])
			require.NoError(t, err)
			next = w.in(timestamppb.New(is))
		}
		all[row[1]] = said{row[2], html.UnescapeString(row[3]), next}
	}
	return all
}

// get is a view of the page.
func (w *viewers) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// describe reads the description and the view of one job of each kind.
func (w *viewers) describe(t *testing.T) {
	t.Helper()
	for _, answer := range verbs.Each(t.Context(), len(kinds), func(ctx context.Context, n int) (verbs.Done, error) {
		k := kinds[n]
		id := k.ids()[0]
		answer, err := w.clients.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
		if err != nil {
			return verbs.Done{}, err
		}
		state := answer.GetJob().GetState()
		if got := (said{word(state.GetStatus()), state.GetReason(), ""}); got != (said{k.status, k.reason, ""}) || (state.GetNextStartTime() != nil) != k.starts() {
			return verbs.Done{}, fmt.Errorf("GetJob says %+v of %s, next %s", got, id, w.in(state.GetNextStartTime()))
		}
		if k.name == "loop-unserved" {
			return verbs.Done{}, nil // It takes a while to find out that nobody answers.
		}
		told := w.ok(t, "jobs", "describe", id)
		status := k.status
		if k.reason != "" {
			status += ": " + k.reason
		}
		if !regexp.MustCompile(`(?m)^Status +` + regexp.QuoteMeta(status) + `(, \d ahead)?$`).MatchString(told) {
			return verbs.Done{}, fmt.Errorf("jobs describe says of %s:\n%s", id, told)
		}
		shown := html.UnescapeString(w.get(t, "/jobs/"+id))
		if !strings.Contains(shown, `<span class="status s-`+k.status+`">`) || !strings.Contains(shown, k.reason) {
			return verbs.Done{}, fmt.Errorf("the page says of %s:\n%s", id, shown)
		}
		return verbs.Done{}, nil
	}, nil) {
		require.NoError(t, answer.Err)
	}
	failing := map[string]bool{}
	for _, a := range w.snapshot(t).GetAlerts() {
		if a.GetRule() == jobsv1.AlertRule_ALERT_RULE_JOB_FAILING {
			require.Contains(t, a.GetText(), "told to fail")
			failing[a.GetObject()] = true
		}
	}
	answer, err := w.clients.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1000})
	require.NoError(t, err)
	for _, j := range answer.GetJobs() {
		require.Equal(t, j.GetState().GetFailing() != nil, failing[j.GetId()], j.GetId())
	}
}

// runsAgree reads the run under way of one job of each kind that has one, as all tell it that list
// runs.
func (w *viewers) runsAgree(t *testing.T) {
	t.Helper()
	letters := map[string]string{"running": "R", "waiting": "W"}
	row := regexp.MustCompile(`(?s)id="job-runs".*?<span class="status s-([^"]+)">.*?<td class="long">(.*?)</td>`)
	for _, k := range kinds {
		switch k.name {
		case "runs", "unserved", "item-runs", "once-runs", "once-unserved":
		default:
			continue // Nothing of it is under way, or only iterations are.
		}
		id := k.ids()[0]
		answer, err := w.clients.Runs.ListRuns(t.Context(), &jobsv1.ListRunsRequest{Filter: "job_id = " + id})
		require.NoError(t, err)
		run := answer.GetRuns()[0]
		require.Equal(t, k.status, api.Word(run.GetStatus()), id)
		require.Equal(t, k.reason, run.GetWaitReason(), id)
		listed := rows(w.ok(t, "runs", "list", "--job", id))[0]
		require.Equal(t, k.status, listed["STATUS"], id)
		require.Contains(t, listed["RESULT"], k.reason, id)
		shown := row.FindStringSubmatch(html.UnescapeString(w.get(t, "/jobs/"+id)))
		require.NotNil(t, shown, id)
		require.Equal(t, k.status, shown[1], id)
		require.Contains(t, shown[2], k.reason, id)
		if k.name == "unserved" {
			require.Contains(t, html.UnescapeString(w.get(t, "/runs/"+url.PathEscape(run.GetName()))), "Waits: "+k.reason, id)
		}
		for _, j := range w.snapshot(t).GetJobs() {
			if j.GetId() == id && j.GetMode() == "recurring" {
				require.True(t, strings.HasSuffix(j.GetOutcomes(), letters[k.status]), "%s has %s", id, j.GetOutcomes())
			}
		}
	}
}

// verbsAgree waits until the verbs of jobs apply alike to a job of a list and of the overview:
// runs that are held back come and go between the two.
func (w *viewers) verbsAgree(t *testing.T) {
	t.Helper()
	stacktest.WaitFor(t, "verbs to apply alike", func() (bool, error) {
		answer, err := w.clients.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{PageSize: 1000})
		require.NoError(t, err)
		shown := map[string]*jobsv1.JobOverview{}
		for _, j := range w.snapshot(t).GetJobs() {
			shown[j.GetId()] = j
		}
		for _, j := range answer.GetJobs() {
			for _, v := range append(verbs.JobVerbs(), verbs.RetryRun) {
				if one, other := v.WhyNot(verbs.OfOverview(shown[j.GetId()])), v.WhyNot(verbs.OfJob(j)); one != other {
					return false, fmt.Errorf("%s of %s: the overview says %q, the list %q", v.Name, j.GetId(), one, other)
				}
			}
		}
		return true, nil
	})
}

// missedAgree pauses what goes on, so that what was missed stays, and compares it.
func (w *viewers) missedAgree(t *testing.T) {
	t.Helper()
	missing := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == "missed" })].ids()
	stacktest.WaitFor(t, "missed starts", func() (bool, error) {
		for _, j := range w.snapshot(t).GetJobs() {
			if slices.Contains(missing, j.GetId()) && strings.Count(j.GetOutcomes(), verbs.NoRun) < 2 {
				return false, nil
			}
		}
		return true, nil
	})
	w.each(t, verbs.PauseJob, append(kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == "held" })].ids(), missing...))
	stacktest.WaitFor(t, "all to agree on missed starts", func() (bool, error) {
		answer, err := w.clients.Jobs.ListMissedStarts(t.Context(), &jobsv1.ListMissedStartsRequest{StartTime: timestamppb.New(w.now)})
		require.NoError(t, err)
		counts := map[string]int32{}
		for _, c := range answer.GetCounts() {
			counts[c.GetJobId()] = c.GetMissed()
		}
		for _, j := range w.snapshot(t).GetJobs() {
			if letters := strings.Count(j.GetOutcomes(), verbs.NoRun); letters != int(counts[j.GetId()]) {
				return false, fmt.Errorf("%d starts of %s are missed, its outcomes are %s", counts[j.GetId()], j.GetId(), j.GetOutcomes())
			}
		}
		id := missing[0]
		found := answered[jobsv1.ListMissedStartsResponse](t, w.console, "runs", "list", "--missed", "--job", id, "--limit", "0")
		told := fmt.Sprintf("%d missed", counts[id])
		described, shown := w.ok(t, "jobs", "describe", id), w.get(t, "/jobs/"+id)
		if len(found.GetMissedStarts()) != int(counts[id]) || !strings.Contains(described, told+"\n") || !strings.Contains(shown, told) {
			return false, fmt.Errorf("of %s %d starts are missed, the list has %d, described as\n%s", id, counts[id], len(found.GetMissedStarts()), described)
		}
		return true, nil
	})
}
