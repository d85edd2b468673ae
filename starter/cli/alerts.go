package cli

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) alertsCommand() *cobra.Command {
	cmd := group("alerts", "List what needs a person, silence the watchdog about it, and test its receivers",
		i.alertsListCommand(), i.silenceCommand(), i.silencesCommand(), i.unsilenceCommand(), i.alertsTestCommand())
	i.natsFlag(cmd)
	return cmd
}

func (i *invocation) alertsListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the alerts, the most urgent first",
		Long: `list shows the alerts that are on now, also those that have not held long enough for
the watchdog to tell them. An alert that another one explains is not listed unless --all
is given: EXTENT says what a cause holds up, and how many jobs fail alike. -o json has all
alerts. SILENCED names the silence that keeps the watchdog from telling, who made it, and
until when it holds.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := i.api.Alerts.ListAlerts(cmd.Context(), &jobsv1.ListAlertsRequest{})
			if err != nil {
				return err
			}
			i.noteEmpty("alert", len(answer.GetAlerts()))
			return i.emit(answer, func(w io.Writer) error { return i.writeAlerts(w, answer.GetAlerts(), all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that others explain, below them")
	return cmd
}

func (i *invocation) writeAlerts(w io.Writer, alerts []*jobsv1.Alert, all bool) error {
	t := newTable("RULE", "OBJECT", "SEVERITY", "OWNER", "SINCE", "EXTENT", "SILENCED", "TEXT").
		spare("OWNER", "EXTENT", "SILENCED", "SEVERITY", "SINCE").wrapLast()
	add := func(a *jobsv1.Alert, indent, extent string) {
		t.add(indent+api.RuleWord(a.GetRule()), a.GetObject(), api.Word(a.GetSeverity()), a.GetOwner(), i.when(toTime(a.GetFireTime())), extent,
			i.silenced(a), withCure(a.GetText(), a.GetCure()))
	}
	for _, group := range api.GroupAlerts(alerts) {
		if add(group.Alert, "", group.Extent()); !all {
			continue
		}
		for _, a := range slices.Concat(group.Alike, group.HoldsUp) {
			add(a, "  ", "")
		}
	}
	return t.write(w)
}

// silenced says which silence keeps the watchdog from telling about an alert, "" if none does.
func (i *invocation) silenced(a *jobsv1.Alert) string {
	if a.GetSilence() == "" {
		return ""
	}
	text := a.GetSilence()
	if by := a.GetSilencedBy(); by != "" {
		text += " by " + by
	}
	return text + " until " + i.moment(toTime(a.GetSilencedUntil()))
}

func (i *invocation) silenceCommand() *cobra.Command {
	reason, period := "", job.Duration(2*time.Hour)
	cmd := &cobra.Command{
		Use:   "silence RULE[/OBJECT]",
		Short: "Keep the watchdog from telling about alerts for a time",
		Long: `silence keeps all replicas from telling about alerts of a rule, or about one alert.
OBJECT may end with a star. all stands for every rule: all/extract_hobo.*. An alert that
is still on when the silence ends is told then. Silences are kept in NATS.`,
		Args: arguments("RULE[/OBJECT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			word, object, _ := strings.Cut(args[0], "/")
			rule := api.RuleOf(word)
			if rule == jobsv1.AlertRule_ALERT_RULE_UNSPECIFIED && word != "all" {
				return misuse(cmd, "%q is not a rule: the rules are %s, and all", word, strings.Join(ruleWords(), ", "))
			}
			done, err := i.do(cmd.Context(), verbs.CreateSilence, verbs.Args{
				Names: []string{object}, Rule: rule, Reason: reason, End: time.Now().Add(period.Std()),
			})
			if err != nil {
				return err
			}
			return i.tell(done)
		},
	}
	cmd.Flags().Var(durationOf(&period), "for", "how long it holds, at most P90D")
	cmd.Flags().Var(textValue{&reason, "TEXT"}, "reason", "why, for people")
	return cmd
}

// ruleWords are the words of all rules.
func ruleWords() []string {
	var words []string
	for n := int32(1); ; n++ {
		if _, ok := jobsv1.AlertRule_name[n]; !ok {
			return words
		}
		words = append(words, api.RuleWord(jobsv1.AlertRule(n)))
	}
}

func (i *invocation) silencesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "silences",
		Short: "List the silences that have not ended",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := i.api.Alerts.ListSilences(cmd.Context(), &jobsv1.ListSilencesRequest{})
			if err != nil {
				return err
			}
			i.noteEmpty("silence", len(answer.GetSilences()))
			return i.emit(answer, func(w io.Writer) error {
				t := newTable("NAME", "RULE", "OBJECT", "UNTIL", "BY", "REASON")
				for _, s := range answer.GetSilences() {
					rule := "all"
					if s.GetRule() != jobsv1.AlertRule_ALERT_RULE_UNSPECIFIED {
						rule = api.RuleWord(s.GetRule())
					}
					t.add(s.GetName(), rule, s.GetObject(), i.moment(s.GetEndTime().AsTime()), s.GetCreator(), s.GetReason())
				}
				return t.write(w)
			})
		},
	}
}

func (i *invocation) unsilenceCommand() *cobra.Command {
	return i.oneCommand(verbs.DeleteSilence, verbHelp{short: "End a silence"}, "NAME")
}
