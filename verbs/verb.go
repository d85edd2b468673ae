package verbs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Kind is what verbs are done to, as the audit log and answers name it.
type Kind string

// The kinds.
const (
	KindJob          Kind = "job"
	KindJobSet       Kind = "job-set"
	KindRun          Kind = "run"
	KindQueue        Kind = "queue"
	KindLoad         Kind = "load"
	KindQuarantine   Kind = "quarantine"
	KindBookmark     Kind = "bookmark"
	KindIntegration  Kind = "integration"
	KindOrganization Kind = "organization"
	KindSilence      Kind = "silence"
	KindDeployment   Kind = "deployment"
	KindUpload       Kind = "upload"
)

// Verb is one change that people ask for by the Job API. A row says all that is the same for
// whoever offers it: the command line, the status page, starter top, alerts, roles, the audit
// log.
type Verb struct {
	// Name is that of the page's action, and unique: pause-job.
	Name string
	// Command is the command of starter that does it: jobs pause. Empty if there is none.
	Command string
	// Procedure is the procedure of the Job API, as jobsv1connect has it.
	Procedure string
	// Role is the least role of who may ask for it.
	Role Role
	// Kind is what it is done to.
	Kind Kind

	// Label is the text of its button. Empty if nobody offers it without more.
	Label string
	// Question is asked before it is done, wherever that is, unless who asks for it has said
	// that it is meant; the first %s is what it is done to. Empty: nothing is asked about what
	// was named. A verb that Previews has the server say what would be done, and asks that.
	Question string
	// QuestionOfOne is the Question if Args.Sequences has one number. Empty: it is the same.
	QuestionOfOne string
	// Action is the action of alerts that it is.
	Action jobsv1.AlertAction

	// WhyNot is one sentence without its subject that says why it does not apply. Empty if it
	// does. Nil: it always does.
	WhyNot func(Subject) string
	// NotAmong is one sentence without its subject that says why one to which it applies is left
	// out where nobody has named it. Nil: none is.
	NotAmong func(Subject) string
	// Previews says that the request can ask what would be done, with Args.Preview.
	Previews bool
	// ManyJobs says that it is offered for many jobs at once, or for the latest run of each.
	ManyJobs bool
	// ReasonShown says that lists and histories show its reason: people are asked for it, and
	// who gives none is named in its place.
	ReasonShown bool
	// Times says that it needs Args.End, or Args.Start and Args.End: its button leads to a form.
	Times bool

	request func(Args) proto.Message
	done    func(Args, proto.Message) Done
}

// Subject is what decides whether a verb applies: the part of its kind is set.
type Subject struct {
	Job JobState
	Run jobsv1.RunStatus
	// Iteration says that the run is one of a continuous job: the verbs of jobs are its verbs.
	Iteration bool
	Queue     QueueState
	Load      LoadState
	Teardown  TeardownState
	// Enabled says of an integration that it is switched on.
	Enabled bool
}

// About is a sentence about something, of one without its subject.
func About(what, sentence string) string {
	if rest, ok := strings.CutPrefix(sentence, "it "); ok {
		return what + " " + rest
	}
	return what + ": " + sentence
}

// Applies reports whether there is something for the verb to do.
func (v *Verb) Applies(s Subject) bool { return v.WhyNot == nil || v.WhyNot(s) == "" }

// WhyNotAmong is why it is not done to one of many that nobody has named, "" if it is.
func (v *Verb) WhyNotAmong(s Subject) string {
	if !v.Applies(s) {
		return v.WhyNot(s)
	}
	if v.NotAmong == nil {
		return ""
	}
	return v.NotAmong(s)
}

// AppliesAmong reports whether it is done to one of many that nobody has named.
func (v *Verb) AppliesAmong(s Subject) bool { return v.WhyNotAmong(s) == "" }

// Offered are those of a list that have a button, that a role may ask for, and that apply.
func Offered(list []*Verb, role Role, s Subject) []*Verb {
	var offered []*Verb
	for _, v := range list {
		if v.Label != "" && v.Role <= role && v.Applies(s) {
			offered = append(offered, v)
		}
	}
	return offered
}

// Asks reports whether there is a question before it is done, even to what was named.
func (v *Verb) Asks() bool { return v.Question != "" || v.Previews }

// Ask is the question whether it is meant: where Question is empty, for who asks about each.
func (v *Verb) Ask(a Args) string {
	if len(a.Sequences) == 1 && v.QuestionOfOne != "" {
		return fmt.Sprintf(v.QuestionOfOne, a.object())
	}
	if v.Question != "" {
		return fmt.Sprintf(v.Question, a.object())
	}
	return fmt.Sprintf("%s %s %s?", v.word(), v.Kind, a.object())
}

// AskMany is the question whether it is meant, about so many jobs, runs or queues.
func (v *Verb) AskMany(n int) string {
	return fmt.Sprintf(cmp.Or(v.Question, v.word()+" %s?"), plantext.Counted(n, string(v.Kind), string(v.Kind)+"s"))
}

// word is the first word of its name: Pause.
func (v *Verb) word() string {
	word, _, _ := strings.Cut(v.Name, "-")
	return strings.ToUpper(word[:1]) + word[1:]
}

// Args are what is said of a verb to be done.
type Args struct {
	// Names name what it is done to, from the outside in: a queue, then its item.
	Names []string
	// Reason is what the history of changes shows, and lists of what is paused or stopped. There
	// the API fills in who asked if it is empty.
	Reason string
	// Sequences are the numbers of items. None means all.
	Sequences []int64
	// Start and End bound times: of starts, or that of a silence.
	Start, End time.Time
	// For is how long a pause lasts, 0 for no end.
	For time.Duration
	// Filter chooses items of quarantine, if no Sequences do.
	Filter *jobsv1.QuarantineFilter
	// Rule is that of a silence.
	Rule jobsv1.AlertRule
	// Preview asks what would be done, and does nothing.
	Preview bool
	// With are fields of the request that only one command sets, nil for none.
	With proto.Message
}

// To are the arguments of a verb that is done to what the names name.
func To(names ...string) Args { return Args{Names: names} }

// name is the n-th name, "" if there is none.
func (a Args) name(n int) string {
	if n < len(a.Names) {
		return a.Names[n]
	}
	return ""
}

// object is what it is done to.
func (a Args) object() string { return a.name(max(len(a.Names)-1, 0)) }

// Done is what a verb has done.
type Done struct {
	// Text is one sentence without its period about what it was done to. Of a preview, it is a
	// question.
	Text string
	// Result says it of a thing that is named beside it: paused.
	Result string
	// Unchanged says that there was nothing to do.
	Unchanged bool
	// Run is the name of the run that has started. Empty if none has.
	Run string
	// Names are details: what would be concerned, or what stays.
	Names []string
	// Answer is the API's.
	Answer proto.Message
}

// row is a verb with the messages of its procedure.
func row[In, Out proto.Message](v Verb, request func(Args) In, done func(Args, Out) Done) *Verb {
	v.request = func(a Args) proto.Message { return request(a) }
	v.done = func(a Args, m proto.Message) Done {
		answer, _ := m.(Out) // The descriptor of the procedure has this type.
		return done(a, answer)
	}
	return &v
}

// All are all verbs, in the order in which buttons stand.
func All() []*Verb {
	return slices.Concat(JobVerbs(), RunVerbs(), QueueVerbs(), ItemVerbs(), DeadLetterVerbs(), LoadVerbs(), QuarantineVerbs(),
		alertVerbs(), PlatformVerbs(), DeploymentVerbs(), declareVerbs(), uploadVerbs())
}

// ManyJobsVerbs are those that are offered for many jobs at once.
func ManyJobsVerbs() []*Verb {
	return slices.DeleteFunc(All(), func(v *Verb) bool { return !v.ManyJobs })
}

// Find finds a verb for which the function holds, nil if there is none.
func Find(is func(*Verb) bool) *Verb {
	for _, v := range All() {
		if is(v) {
			return v
		}
	}
	return nil
}

// OfAction is the verb that is an action of alerts, nil if there is none.
func OfAction(action jobsv1.AlertAction) *Verb {
	if action == jobsv1.AlertAction_ALERT_ACTION_UNSPECIFIED {
		return nil
	}
	return Find(func(v *Verb) bool { return v.Action == action })
}

// Actions are the actions of alerts among the verbs of a list that apply.
func Actions(of Subject, list ...*Verb) []jobsv1.AlertAction {
	var actions []jobsv1.AlertAction
	for _, v := range list {
		if v.Action != jobsv1.AlertAction_ALERT_ACTION_UNSPECIFIED && v.Applies(of) {
			actions = append(actions, v.Action)
		}
	}
	return actions
}

// OfProcedure is the verb of a procedure of the Job API, nil if it has none.
func OfProcedure(procedure string) *Verb {
	return Find(func(v *Verb) bool { return v.Procedure == procedure })
}
