package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestMisuse(t *testing.T) {
	t.Parallel()
	items := writeFile(t, "items.jsonl", `{"steps": 1}`)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"jbos"}, `unknown command "jbos"; did you mean "jobs"? (see starter --help)`},
		{[]string{"jobs", "lost"}, `unknown command "lost"; did you mean "list"? (see starter jobs --help)`},
		{[]string{"jobs", "xyzzyx"}, `unknown command "xyzzyx" (see starter jobs --help)`},
		{[]string{"plan", "--porne"}, `unknown flag: --porne (see starter plan --help)`},
		{[]string{"plan", "x"}, `unexpected argument "x" (see starter plan --help)`},
		{[]string{"plan", "-o", "yaml"}, `invalid argument "yaml" for "-o, --output" flag: it is one of table, json (see starter plan --help)`},
		{[]string{"plan", "--timeout", "soon"}, `invalid argument "soon" for "--timeout" flag: "soon" is not a duration: write it as PT15M, 15m or 900 (seconds) (see starter plan --help)`},
		{[]string{"plan", "--timeout", "0"}, `invalid argument "0" for "--timeout" flag: 0 is not longer than zero (see starter plan --help)`},
		{[]string{"plan", "-f", "missing.toml"}, `jobs file missing.toml cannot be read: no such file or directory`},
		{[]string{"validate", "missing.toml"}, `jobs file missing.toml cannot be read: no such file or directory`},
		{[]string{"completion", "tcsh"}, `unknown command "tcsh" (see starter completion --help)`},
		{[]string{"validate", "-f", "a.toml", "b.toml"}, `give either FILE or -f (see starter validate --help)`},
		{[]string{"validate", "-f", "missing.toml"}, `jobs file missing.toml cannot be read: no such file or directory`},
		{[]string{"loads", "--nats", "http://127.0.0.1:4222"}, `the NATS URL http://127.0.0.1:4222 begins with http://: NATS is reached by nats://, tls://, ws:// or wss://`},
		{[]string{"jobs", "stop"}, `give JOB, or filters such as --type (see starter jobs stop --help)`},
		{[]string{"jobs", "describe", "a.b", "--toml", "-o", "json"}, `give either --toml or -o json (see starter jobs describe --help)`},
		{[]string{"jobs", "list", "--mode", "once"}, `invalid argument "once" for "--mode" flag: it is one of one-shot, continuous, recurring, queued (see starter jobs list --help)`},
		{[]string{"jobs", "list", "--status", "done"}, `invalid argument "done" for "--status" flag: it is one of scheduled, running, failing, paused, waiting, completed, failed, stopped, terminated, deleted, canceling (see starter jobs list --help)`},
		{[]string{"runs", "list", "--status", "done"}, `invalid argument "done" for "--status" flag: it is one of running, waiting, completed, failed, canceled, terminated, timed_out, held_back, superseded, canceling, interrupted (see starter runs list --help)`},
		{[]string{"runs", "list", "--since", "noon"}, `invalid argument "noon" for "--since" flag: it is neither a time such as 2026-05-01T12:00:00Z nor a duration, counted back from now: write it as PT15M, 15m or 900 (seconds) (see starter runs list --help)`},
		{[]string{"drift", "--what"}, `unknown flag: --what (see starter drift --help)`},
		{[]string{"jobs", "pause", "--mode", "weekly", "--yes"}, `invalid argument "weekly" for "--mode" flag: it is one of one-shot, continuous, recurring, queued (see starter jobs pause --help)`},
		{[]string{"runs", "list", "--limit", "many"}, `invalid argument "many" for "--limit" flag: it is a whole number (see starter runs list --help)`},
		{[]string{"runs", "list", "--limit", "99999999999999999999"}, `invalid argument "99999999999999999999" for "--limit" flag: it is a whole number of 64 bits (see starter runs list --help)`},
		{[]string{"runs", "list", "--missed=perhaps"}, `invalid argument "perhaps" for "--missed" flag: it is true or false (see starter runs list --help)`},
		{[]string{"jobs", "next", "a.b", "-n", "some"}, `invalid argument "some" for "--count" flag: it is a whole number (see starter jobs next --help)`},
		{[]string{"upcoming", "--owner", "me"}, `invalid argument "me" for "--owner" flag: "me" is not an owner: write organization:NAME or user:NAME (see starter upcoming --help)`},
		{[]string{"runs", "list", "--limit", "-1"}, `--limit -1 is negative (see starter runs list --help)`},
		{[]string{"runs", "list", "--missed", "--status", "failed"}, `--status cannot be combined with --missed (see starter runs list --help)`},
		{[]string{"runs", "list", "--mode", "continuous"}, `continuous jobs have iterations, not runs: give --job to list those of one (see starter runs list --help)`},
		{[]string{"runs", "list", "--owner", "me"}, `invalid argument "me" for "--owner" flag: "me" is not an owner: write organization:NAME or user:NAME (see starter runs list --help)`},
		{[]string{"runs", "retry"}, `give JOB or WORKFLOW_ID, or filters such as --type (see starter runs retry --help)`},
		{[]string{"runs", "retry", "a.b", "--type", "A"}, `give either JOB or WORKFLOW_ID or --type (see starter runs retry --help)`},
		{[]string{"runs", "cancel", "--tag", "=x"}, `invalid argument "=x" for "--tag" flag: a tag is NAME=VALUE, or NAME for any value (see starter runs cancel --help)`},
		{[]string{"jobs", "list", "--tag", "vendor="}, `invalid argument "vendor=" for "--tag" flag: a tag is NAME=VALUE, or NAME for any value (see starter jobs list --help)`},
		{[]string{"plan", "-f", ""}, `invalid argument "" for "-f, --file" flag: it is empty (see starter plan --help)`},
		{[]string{"apply", ""}, `PLAN "": it is empty (see starter apply --help)`},
		{[]string{"validate", ""}, `FILE "": it is empty (see starter validate --help)`},
		{[]string{"jobs", "list", "--namespace", ""}, `invalid argument "" for "--namespace" flag: it is empty (see starter jobs list --help)`},
		{[]string{"run", "a.b", "--at", "noon"}, `--at "noon" is not a time such as 2026-05-01T12:00:00Z (see starter run --help)`},
		{[]string{"run", "a.b", "--at", "2026-05-01T12:00:00Z"}, `--at 2026-05-01T12:00:00Z is in the past (see starter run --help)`},
		{[]string{"run", "a.b", "--at", "2100-05-01T12:00:00Z", "--in", "1h"}, `give either --at or --in (see starter run --help)`},
		{[]string{"run"}, `give either JOB or --type (see starter run --help)`},
		{[]string{"run", "a.b", "--type", "TakeSteps"}, `give either JOB or --type (see starter run --help)`},
		{[]string{"run", "a.b", "--key", "x"}, `--key goes with --type (see starter run --help)`},
		{[]string{"run", "--type", "TakeSteps", "-f", "x"}, `-f goes with JOB, not with --type (see starter run --help)`},
		{[]string{"run", "--type", "OnlyRecurring"}, `job type OnlyRecurring cannot run in mode one-shot, only in recurring`},
		{[]string{"run", "--type", "TakeSteps", "--spec", "@missing.json"}, `the spec cannot be read: open missing.json: no such file or directory`},
		{[]string{"run", "--type", "TakeSteps", "--owner", "me"}, `invalid argument "me" for "--owner" flag: "me" is not an owner: write organization:NAME or user:NAME (see starter run --help)`},
		{[]string{"queues", "enqueue", "q"}, `give either --type or --job (see starter queues enqueue --help)`},
		{[]string{"queues", "enqueue", "q", "--job", "a.b", "--file", items}, `--file goes with --type (see starter queues enqueue --help)`},
		{[]string{"queues", "enqueue", "q", "--type", "TakeSteps", "--file", items, "--key", "x"}, `--file has the specs and keys: leave out --spec and --key (see starter queues enqueue --help)`},
		{[]string{"queues", "peek", "q", "--from", "-1"}, `--from and --limit are not negative (see starter queues peek --help)`},
		{[]string{"queues", "purge", "q", "--from", "9", "--to", "3"}, `--from 9 to --to 3 is not a range of numbers (see starter queues purge --help)`},
		{[]string{"queues", "set", "q"}, `--on-failure is missing (see starter queues set --help)`},
		{[]string{"queues", "set", "q", "--on-failure", "stop"}, `invalid argument "stop" for "--on-failure" flag: it is one of continue, halt (see starter queues set --help)`},
		{[]string{"queues", "dead", "retry", "q"}, `give JOB or NUMBER, or --all (see starter queues dead retry --help)`},
		{[]string{"queues", "dead", "drop", "q", "a.b", "--all"}, `give JOB or NUMBER, or --all (see starter queues dead drop --help)`},
		{[]string{"queues", "enqueue", "Q", "--type", "TakeSteps", "--file", items}, `queue "Q": a name starts with a-z or 0-9, goes on with a-z, 0-9, '.', '_' or '-', and has at most 64 characters (see starter queues enqueue --help)`},
		{[]string{"queues", "enqueue", "q", "--type", "TakeSteps", "--file", "missing.jsonl"}, `the items cannot be read: open missing.jsonl: no such file or directory`},
	} {
		r := console{}.run(t.Context(), test.args...)
		// Of plan, 2 would say that there are changes.
		wrongCall := strings.HasSuffix(test.want, " --help)")
		code := 1
		if wrongCall && test.args[0] != "plan" && test.args[0] != "drift" {
			code = 2
		}
		require.Equal(t, code, r.code, test.args)
		require.Equal(t, "starter: "+test.want+"\n", r.stderr, test.args)
		require.Empty(t, r.stdout, test.args)
	}
}

// TestUnknownTypeOffline has names of job types that other workers may bring.
func TestUnknownTypeOffline(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]string{
		"TakeStep": `job type "TakeStep"; did you mean "TakeSteps"?`,
		"Nothing":  `job type "Nothing"; there are TakeSteps, OnlyRecurring, NobodyServes`,
	} {
		r := console{address: "127.0.0.1:1"}.run(t.Context(), "run", "--type", name)
		require.Equal(t, 1, r.code)
		note, err, _ := strings.Cut(r.stderr, "\n")
		require.Equal(t, "It is not known whether a worker has "+hint, note)
		require.Contains(t, err, "starter: temporal at 127.0.0.1:1 cannot be reached; is it running there?")
	}
}

// TestEmptyNames is what scripts give whose variables are not set: nothing may
// stand for all there is.
func TestEmptyNames(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"jobs", "describe"}, {"jobs", "stop"}, {"jobs", "pause"}, {"jobs", "trigger"}, {"run"},
		{"runs", "describe"}, {"runs", "retry"}, {"runs", "cancel"}, {"runs", "terminate", "--yes"}, {"runs", "terminate", "a.b"},
		{"runs", "cancel", "--yes", "--job"}, {"runs", "cancel", "--yes", "--queue"}, {"runs", "cancel", "--yes", "--type"},
		{"jobs", "stop", "--yes", "--queue"}, {"jobs", "stop", "--yes", "--owner"}, {"jobs", "stop", "--yes", "--tag"},
		{"quarantine", "drop", "--yes", "--location"}, {"quarantine", "replay", "--yes", "--class"},
		{"queues", "purge", "--yes"}, {"queues", "cancel", "photos"}, {"queues", "enqueue", "q", "--job"},
		{"run", "--type", "TakeSteps", "--spec", `{"steps": 1}`, "--key"},
		{"jobs", "list", "--address"}, {"jobs", "list", "--namespace"}, {"jobs", "list", "--profile"}, {"quarantine", "list", "--nats"},
		{"run", "a.b", "--at"}, {"run", "a.b", "-f"}, {"apply", "-f"}, {"queues", "enqueue", "q", "--type", "TakeSteps", "--file"},
	} {
		r := console{}.run(t.Context(), append(args, "")...)
		require.Equal(t, 2, r.code, args)
		require.Regexp(t, `^starter: [^\n]+\n$`, r.stderr, args)
	}
	r := console{}.run(t.Context(), "jobs", "stop", "é ö")
	require.Equal(t, 2, r.code)
	require.Equal(t, "starter: JOB \"é ö\": a name is of ASCII characters without spaces (see starter jobs stop --help)\n", r.stderr)
	r = console{}.run(t.Context(), "queues", "pause", "Big Queue")
	require.Equal(t, 2, r.code)
	require.Equal(t, "starter: queue \"Big Queue\": "+job.NameRule+" (see starter queues pause --help)\n", r.stderr)
}

func TestSpecsAreCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec, want string
	}{
		{`{`, "starter: job type TakeSteps: the spec is not JSON: it ends too early\n"},
		{`[]`, "starter: job type TakeSteps: the spec is not a JSON object\n"},
		{`{} {}`, "starter: job type TakeSteps: the spec is not one JSON object: there is more text after it\n"},
		{
			`{"stps": 0, "gate": 1}`,
			"starter: job type TakeSteps: spec: key \"steps\" is missing\n" +
				"starter: job type TakeSteps: spec.gate: 1 is not a string\n" +
				"starter: job type TakeSteps: spec.stps: unknown key \"stps\"; did you mean \"steps\"?\n",
		},
		{`{"steps": 1, "from": "a", "to": "a"}`, "starter: job type TakeSteps: spec: from and to are the same\n"},
	} {
		r := console{}.run(t.Context(), "run", "--type", "TakeSteps", "--spec", test.spec)
		require.Equal(t, 1, r.code, test.spec)
		require.Equal(t, test.want, r.stderr, test.spec)
		require.Equal(t, r, console{stdin: test.spec}.run(t.Context(), "run", "--type", "take_steps", "--spec", "-"))
		file := writeFile(t, "spec.json", test.spec)
		require.Equal(t, r, console{}.run(t.Context(), "queues", "enqueue", "q", "--type", "TakeSteps", "--spec", "@"+file))
	}
	r := console{}.run(t.Context(), "run", "--type", "TakeSteps", "--key", "Ü", "--spec", `{"steps": 1}`)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `starter: job type TakeSteps: job key "Ü": a name starts with`)
}

func TestItemsAreCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	items := writeFile(t, "items.jsonl", `{"steps": 1}
{"key": "a", "spec": {"steps": 1}}

{"key": "b", "spec": {"steps": 0}}
{"key": "a", "spec": {"steps": 2}}
nonsense
`)
	r := console{}.run(t.Context(), "queues", "enqueue", "q", "--type", "TakeSteps", "--file", items)
	require.Equal(t, 1, r.code)
	require.Equal(t, items+`:4: spec.steps: 0 is less than 1
`+items+`:5: key "a" is already used in line 2
`+items+`:6: the spec is not JSON: byte 2 is not what is expected there
starter: `+items+` has 3 problems; nothing was put into the queue
`, r.stderr)

	empty := writeFile(t, "empty.jsonl", "\n")
	r = console{}.run(t.Context(), "queues", "enqueue", "q", "--type", "TakeSteps", "--file", empty)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: "+empty+" has no items\n", r.stderr)
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"jobs"}, {"queues", "--help"}} {
		require.Contains(t, console{}.ok(t, args...), "Usage:")
	}
	help := console{}.ok(t, "--help")
	require.Contains(t, help, "Exit codes:")
	for _, command := range []string{"validate", "plan", "apply", "run", "jobs", "runs", "queues", "version", "completion"} {
		require.Contains(t, help, "\n  "+command+" ")
	}
	require.Contains(t, console{}.ok(t, "completion", "bash"), "bash completion")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	require.Contains(t, console{}.ok(t, "version"), "temporal sdk")
	version := decoded[map[string]any](t, console{}, "version")
	require.NotEmpty(t, version["go"])
	require.NotEmpty(t, version["temporal_sdk"])
}

func TestCompletionOfWords(t *testing.T) {
	t.Parallel()
	require.Contains(t, console{}.ok(t, "__complete", "jobs", "list", "--mode", ""), "one-shot\ncontinuous\nrecurring\nqueued\n")
	require.Contains(t, console{}.ok(t, "__complete", "run", "--type", ""), "TakeSteps\nOnlyRecurring\n")
	require.Contains(t, console{}.ok(t, "__complete", "validate", ""), "toml\n")
}

func TestUnreachableTemporal(t *testing.T) {
	t.Parallel()
	// Port 1 is reserved and nothing listens on it.
	for _, args := range [][]string{
		{"jobs", "list"},
		{"run", "--type", "TakeSteps", "--spec", `{"steps": 1}`},
	} {
		r := console{address: "127.0.0.1:1"}.run(t.Context(), args...)
		require.Equal(t, 1, r.code)
		require.Regexp(t, `^starter: temporal at 127\.0\.0\.1:1 cannot be reached; is it running there\? \([^\n]*\)\n$`, r.stderr)
		require.Empty(t, r.stdout)
	}
}
