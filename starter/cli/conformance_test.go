package cli_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// step is a command of the script, with the exit code and a text that each side has to get.
// Words in capitals are values of the side: NAME, by which its objects are called, and others.
// JSON has other words for what was done: only a step that waits, or fails, looks for the text in
// it. A bar is before a text that counts as well.
type step struct {
	code       int
	want, line string
	// waits repeats the command until all sides have the code and the text, and the same answer.
	// Only what changes nothing waits.
	waits bool
	// alone is not compared: a reader that has seen more knows more.
	alone bool
	// before is done for each side, before the command.
	before func(*conformance, *side)
	// form is how the answer is written, by -o. inForms sets it.
	form string
}

func do(code int, want, line string) step { return step{code: code, want: want, line: line} }
func ask(code int, want, line string) step {
	return step{code: code, want: want, line: line, waits: true}
}

func see(code int, want, line string) step {
	return step{code: code, want: want, line: line, waits: true, alone: true}
}

// prepared has something done for each side before a step.
func prepared(before func(*conformance, *side), s step) step {
	s.before = before
	return s
}

// part is a piece of the script.
type part struct {
	name string
	// turns has one side take all steps after the other. It leaves all as it has found it.
	turns bool
	steps []step
}

// side is one who takes the steps: in process or through a server.
type side struct {
	console
	values map[string]string
}

// names of the sides are of one length, so that columns are equally wide. No word has them in it.
var names = []string{"eastern", "western"}

// conformance is the stack, with one worker and one server, on which all sides work.
type conformance struct {
	*testing.T
	st      *stacktest.Stack
	streams *pipeline.Client
	sides   []*side // in process, through the server
	random  *rand.Rand
}

// TestCommandsAreTheSameInProcessAndThroughAServer takes each step of the script in process and
// through a server. The answer is text or JSON, as it is drawn; in make soak-tests what changes nothing
// answers as both. The commands of the server know its address alone.
func TestCommandsAreTheSameInProcessAndThroughAServer(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	c := &conformance{T: t, st: st, streams: st.Pipeline(t), random: stacktest.Random(t)}
	startWorker(t, st)
	startPlatformWorker(c)
	workers := client.New(st.Dial(t), st.Namespace).Workers
	stacktest.WaitFor(t, "the workers to be listed", func() (bool, error) {
		listed, err := workers.List(t.Context())
		return err == nil && len(listed.Services) == 2, err
	})
	remote := map[string]string{cli.EnvServer: serving(t, st)}
	now := time.Now().Truncate(time.Second) // Ages are told from one moment.
	for n, name := range names {
		s := &side{console: console{address: st.Temporal, namespace: st.Namespace, env: st.Variables(), now: now}}
		if n == 1 {
			s.console = console{env: remote, now: now}
		}
		s.values = map[string]string{"NAME": name}
		c.sides = append(c.sides, s)
	}
	for _, p := range script() {
		ok := t.Run(p.name, func(t *testing.T) {
			part := *c
			part.T = t
			steps := part.inForms(p.steps)
			if p.turns {
				part.takeTurns(steps)
			} else {
				part.takeTogether(steps)
			}
		})
		require.True(t, ok, "the rest builds on it")
	}
}

// serving runs starter serve in this process, with the job types of the tests, and gives its URL.
func serving(t *testing.T, st *stacktest.Stack) string {
	t.Helper()
	stderr := &stacktest.Output{}
	program := cli.Program{
		Getenv: st.Getenv, Stdin: strings.NewReader(""), Stdout: &stacktest.Output{}, Stderr: stderr,
		Types: testTypes(), Patience: time.Hour,
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- program.Execute(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--address", st.Temporal})
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	var url []string
	stacktest.WaitFor(t, "the server", func() (bool, error) {
		url = regexp.MustCompile(`serving (\S+)`).FindStringSubmatch(stderr.String())
		return url != nil, nil
	})
	return url[1]
}

// inForms says how the answers to steps are written. In make soak-tests one that only looks is taken
// in both forms.
func (c *conformance) inForms(steps []step) []step {
	var all []step
	for _, s := range steps {
		forms := []string{"table", "json"}
		switch {
		case strings.Contains(s.line, " -o "):
			forms = forms[:1] // It says so itself.
		case !s.waits || !stacktest.Long():
			forms = forms[c.random.IntN(2):][:1]
		}
		for _, form := range forms {
			s.form = form
			all = append(all, s)
			s.before = nil
		}
	}
	return all
}

// takeTogether has all sides take a step at the same time.
func (c *conformance) takeTogether(steps []step) {
	for _, s := range steps {
		var answers []result
		take := func() (bool, error) {
			answers = make([]result, len(c.sides))
			var all sync.WaitGroup
			for n, side := range c.sides {
				all.Go(func() { answers[n] = side.take(c.Context(), s) })
			}
			all.Wait()
			err := c.compare(s, answers)
			return err == nil, err
		}
		if s.before != nil {
			for _, side := range c.sides {
				s.before(c, side)
			}
		}
		c.until(s, take)
	}
}

// until takes a step that waits again and again, and any other once.
func (c *conformance) until(s step, take func() (bool, error)) {
	c.Helper()
	if s.waits {
		stacktest.WaitFor(c, s.line, take)
		return
	}
	_, err := take()
	require.NoError(c, err)
}

// takeTurns has one side take all steps after the other, and compares afterwards.
func (c *conformance) takeTurns(steps []step) {
	answers := make([][]result, len(steps))
	for _, side := range c.sides {
		for n, s := range steps {
			var answer result
			take := func() (bool, error) {
				answer = side.take(c.Context(), s)
				err := s.fits(side, answer)
				return err == nil, err
			}
			if s.before != nil {
				s.before(c, side)
			}
			c.until(s, take)
			answers[n] = append(answers[n], answer)
		}
	}
	for n, s := range steps {
		require.NoError(c, c.compare(s, answers[n]))
	}
}

// take takes a step. On a busy machine a worker may not answer a command in time: who is told so
// does it again. What is said then is another answer, which cannot be compared.
func (s *side) take(ctx context.Context, step step) result {
	args := strings.Fields(s.fill(step.line))
	if !slices.Contains(args, "-o") {
		args = append(args, "-o", step.form)
	}
	const late = "no worker answers within"
	for again := false; ; again = true {
		r := s.run(ctx, args...)
		if step.waits || strings.Contains(step.want, late) || !strings.Contains(r.stderr, late) || ctx.Err() != nil {
			if again {
				return result{code: repeated}
			}
			return r
		}
	}
}

// fill puts the values of the side in.
func (s *side) fill(text string) string {
	for name, value := range s.values {
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

// repeated is the exit code of a step whose first answer was that no worker answers.
const repeated = -1

// compare says how the answers to a step are not as wanted, or not the same for both ways.
func (c *conformance) compare(s step, answers []result) error {
	for n, side := range c.sides {
		if err := s.fits(side, answers[n]); err != nil {
			return err
		}
	}
	if s.alone || answers[0].code == repeated || answers[1].code == repeated {
		return nil
	}
	here, there := c.sides[0].withoutVarying(s, answers[0]), c.sides[1].withoutVarying(s, answers[1])
	if here != there {
		return fmt.Errorf("starter %s: not the same\nin process: %+v\nthrough a server: %+v", s.line, here, there)
	}
	return nil
}

// fits says how an answer is not as wanted.
func (s step) fits(side *side, r result) error {
	if r.code == repeated {
		return nil
	}
	wanted := s.form == "json" && s.code == 0 && !s.waits
	for text := range strings.SplitSeq(side.fill(s.want), "|") {
		wanted = wanted || strings.Contains(strings.ToLower(r.stdout+r.stderr), strings.ToLower(text))
	}
	if r.code != s.code || !wanted {
		return fmt.Errorf("starter %s as %s: exit code %d, not %d with %q\n%s%s", s.line, s.form, r.code, s.code, s.want, r.stdout, r.stderr)
	}
	return nil
}

// varying is what two runs of the same command cannot have the same.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{progress, ""}, // It is of the moment.
	{regexp.MustCompile(`eastern|western`), "NAME"},
	{regexp.MustCompile(`"(creator|caller|movedBy)": "[^"]*"|\b(local|root)\b|a client of the Job API`), "CALLER"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "RUN"},
	{regexp.MustCompile(`\b[A-Z0-9]{12}\b`), "SILENCE"}, // The end of a run's ID looks like one.
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC)?|\d\d:\d\d:\d\d|\b\d{8}t\d{6}\.\d{3}\b`), "TIME"},
	{regexp.MustCompile(`TIME \([^)]*\)`), "TIME"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|s)\b|\b\d+ (s|min|h|d)\b`), "AGE"},
	{regexp.MustCompile(`"(etag|definitionHash)": "[^"]*"`), `"$1": ""`},
	// A run that a worker takes at once has not waited for it.
	{regexp.MustCompile(`\{\s*"kind": +"RUN_SPAN_KIND_WAITED_FOR_WORKER",\s*"startTime": +"TIME",\s*"endTime": +"TIME"\s*\},\s*|(?m:^.*\bwaited for a worker\b.*\n)`), ""},
	{regexp.MustCompile(`(?m)^Did +TIME`), "  TIME"}, // The label is that of the first line.
	{regexp.MustCompile(` {2,}`), "  "},              // The width of a column is that of its values.
}

// shared are the numbers that one stream, bucket or server counts for all sides, and how often a
// load that never ends has failed.
var (
	ofPipeline = regexp.MustCompile(`^(bookmarks|loads|quarantine)\b`)
	shared     = regexp.MustCompile(`"(id|latestId|lastId|originSequence|heldSequence|doneSequence|sequence|revision)": "\d+"|"failures": \d+|` +
		`\b\d+ failures|(\b(ID|item|[Mm]essage)|--before) +\d+|(?m:^\d+  TIME|TIME  \d+$)`)
)

// withoutDrift takes alerts about drift out: a server reads it at other times than a command, and
// other tests of the stack make some.
func (s step) withoutDrift(text string) string {
	if s.form != "json" {
		return regexp.MustCompile(`(?m)^ *drift .*\n(?: +→ .*\n)?`).ReplaceAllString(text, "")
	}
	var list jobsv1.ListAlertsResponse
	if err := protojson.Unmarshal([]byte(text), &list); err != nil {
		return text // It is an error, or not the list.
	}
	list.Alerts = slices.DeleteFunc(list.GetAlerts(), func(a *jobsv1.Alert) bool { return a.GetRule() == jobsv1.AlertRule_ALERT_RULE_DRIFT })
	return protojson.Format(&list)
}

func (s *side) withoutVarying(step step, r result) result {
	if strings.HasPrefix(step.line, "alerts list") {
		r.stdout = step.withoutDrift(r.stdout)
	}
	for _, text := range []*string{&r.stdout, &r.stderr} {
		for name, value := range s.values {
			if len(value) > 3 { // Not a number.
				*text = strings.ReplaceAll(*text, value, name)
			}
		}
		for _, v := range varying {
			*text = v.pattern.ReplaceAllString(*text, v.as)
		}
		if ofPipeline.MatchString(step.line) {
			*text = shared.ReplaceAllString(*text, "NUMBER")
		}
	}
	return r
}

// TestEveryCommandIsInTheScript looks for commands that no step takes.
func TestEveryCommandIsInTheScript(t *testing.T) {
	t.Parallel()
	all, taken := cli.Commands(), map[string]bool{}
	for _, p := range script() {
		for _, s := range p.steps {
			require.NotEmpty(t, cmp.Or(s.want, s.line), p.name)
			name := "starter"
			for word := range strings.FieldsSeq(s.line) {
				if !slices.ContainsFunc(all, func(c string) bool { return strings.HasPrefix(c+" ", name+" "+word+" ") }) {
					break
				}
				name += " " + word
			}
			taken[name] = true
		}
	}
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(taken)))
	withoutServer := map[string]string{
		"schema": "it writes what this program knows", "version": "it tells of this program", "serve": "it is the server",
		"test": "it reads a file, and is no server's watchdog", "setup": "it makes what the server needs", "doctor": "it looks at the servers themselves",
		"health": "it asks one process", "backup": "it looks at the servers themselves",
		"replay": "it runs the code of this program",
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(withoutServer)), cli.OnlyLocal())
}
