// Package verbstest has the states of jobs, runs, queues and loads, with the verbs that apply there.
// The tests of the table of verbs, of the command line, the status page, starter top and the Job API
// read this one list, and none of them compares with the rules themselves.
package verbstest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// State is something in a state. The field of its kind is set.
type State struct {
	// Name is its row in the list: recurring paused.
	Name string
	// Real says that the tests of the Job API bring it about.
	Real     bool
	Job      *jobsv1.Job
	Overview *jobsv1.JobOverview
	Run      *jobsv1.Run
	Queue    *jobsv1.Queue
	Load     *jobsv1.Load

	marks map[string]string
}

// Marks of a verb in a state.
const (
	applies = "yes"
	ifNamed = "named" // it applies, but is not done to one of many
	not     = "-"
)

// Applies reports whether the verb applies.
func (s State) Applies(v *verbs.Verb) bool { return s.marks[v.Name] != not }

// AppliesAmong reports whether the verb is done to one of many that nobody has named.
func (s State) AppliesAmong(v *verbs.Verb) bool { return s.marks[v.Name] == applies }

// Jobs are all states of jobs. Their ids are those of the type TakeSteps, with the name as the key.
func Jobs(t testing.TB) []State {
	t.Helper()
	all := read(t, jobTable, verbs.JobVerbs(), func(s *State, words []string) {
		status := jobsv1.JobStatus(number(t, jobsv1.JobStatus_value, "JOB_STATUS_", words[1]))
		id := "take_steps." + strings.Join(words, "-")
		under := len(words) == 2 && status != jobsv1.JobStatus_JOB_STATUS_SCHEDULED // The others are idle.
		s.Overview = &jobsv1.JobOverview{Id: id, Mode: words[0], Status: status, UnderWay: under}
		s.Job = &jobsv1.Job{Id: id, State: &jobsv1.JobState{Status: status, UnderWay: under}}
		switch words[0] {
		case verbs.OneShot:
			s.Job.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
		case verbs.Recurring:
			s.Job.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{}}
		case verbs.Continuous:
			s.Job.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{}}
		case verbs.Queued:
			s.Job.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{}}
		}
	})
	want := []string{"recurring failing idle", "recurring paused idle"}
	for _, mode := range []string{verbs.OneShot, verbs.Recurring, verbs.Continuous, verbs.Queued} {
		want = append(want, names(mode, "JOB_STATUS_", jobsv1.JobStatus_name)...)
	}
	complete(t, all, want)
	return all
}

// Runs are all states of runs and of iterations. Each is that of a job of its own.
func Runs(t testing.TB) []State {
	t.Helper()
	all := read(t, runTable, verbs.RunVerbs(), func(s *State, words []string) {
		id := "take_steps." + strings.Join(words, "-")
		s.Run = &jobsv1.Run{
			Name: "job/" + id + "@1", JobId: id, Status: jobsv1.RunStatus(number(t, jobsv1.RunStatus_value, "RUN_STATUS_", words[1])),
		}
		if words[0] == "iteration" {
			s.Run.Iteration = 1
		}
	})
	complete(t, all, append(names("run", "RUN_STATUS_", jobsv1.RunStatus_name), names("iteration", "RUN_STATUS_", jobsv1.RunStatus_name)...))
	return all
}

// Queues are all states of queues, with an item that waits and without.
func Queues(t testing.TB) []State {
	t.Helper()
	all := read(t, queueTable, verbs.QueueVerbs(), func(s *State, words []string) {
		s.Queue = &jobsv1.Queue{
			Name: strings.Join(words, "-"), Status: jobsv1.QueueStatus(number(t, jobsv1.QueueStatus_value, "QUEUE_STATUS_", words[1])),
		}
		if words[0] == "waiting" {
			s.Queue.Waiting = 1
		}
	})
	complete(t, all, append(names("empty", "QUEUE_STATUS_", jobsv1.QueueStatus_name), names("waiting", "QUEUE_STATUS_", jobsv1.QueueStatus_name)...))
	return all
}

// Loads are the states of loads.
func Loads(t testing.TB) []State {
	t.Helper()
	all := read(t, loadTable, verbs.LoadVerbs(), func(s *State, words []string) {
		s.Load = &jobsv1.Load{Location: words[1], Flow: "live", Mirror: "default", Waiting: 1}
		if words[1] == "held" {
			s.Load.HeldSequence = 7
		}
	})
	complete(t, all, []string{"load free", "load held"})
	return all
}

// RequireReal requires that a test brings about the real ones of the states, and no others.
func RequireReal[S any](t testing.TB, all []State, brought map[string]S) {
	t.Helper()
	var want []string
	for _, s := range all {
		if s.Real {
			want = append(want, s.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(brought)); !slices.Equal(want, got) {
		t.Fatalf("the states that the list calls real are %q, those brought about %q", want, got)
	}
}

// read reads a list: its first line names verbs, each other one a state with its marks. A star
// before it says that it is real.
func read(t testing.TB, table string, list []*verbs.Verb, fill func(s *State, words []string)) []State {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	columns := strings.Fields(lines[0])
	for _, v := range list {
		if !slices.Contains(columns, v.Name) {
			t.Fatalf("the list of states lacks the verb %s", v.Name)
		}
	}
	if len(columns) != len(list) {
		t.Fatalf("the list of states has %q, which are not all verbs", columns)
	}
	var all []State
	for _, line := range lines[1:] {
		line, isReal := strings.CutPrefix(line, "*")
		fields := strings.Fields(line)
		words, marks := fields[:len(fields)-len(columns)], fields[len(fields)-len(columns):]
		s := State{Name: strings.Join(words, " "), Real: isReal, marks: map[string]string{}}
		for n, mark := range marks {
			if mark != applies && mark != ifNamed && mark != not {
				t.Fatalf("state %s has the mark %s", s.Name, mark)
			}
			s.marks[columns[n]] = mark
		}
		fill(&s, words)
		all = append(all, s)
	}
	return all
}

// number is the value of an enum that a word stands for.
func number(t testing.TB, values map[string]int32, prefix, word string) int32 {
	t.Helper()
	value, ok := values[prefix+strings.ToUpper(word)]
	if !ok {
		t.Fatalf("there is no status %s", word)
	}
	return value
}

// names are the names of states: one for each status that there is.
func names(of, prefix string, statuses map[int32]string) []string {
	var all []string
	for value, name := range statuses {
		if value != 0 {
			all = append(all, of+" "+strings.ToLower(strings.TrimPrefix(name, prefix)))
		}
	}
	return all
}

// complete requires that each state is there once.
func complete(t testing.TB, all []State, want []string) {
	t.Helper()
	got := make([]string, len(all))
	for n, s := range all {
		got[n] = s.Name
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the list has the states %q, there are %q", got, want)
	}
}
