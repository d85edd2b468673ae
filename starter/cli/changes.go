package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) changesCommand() *cobra.Command {
	cmd := group("changes", "Show who changed what", i.changesListCommand())
	cmd.Long = `changes shows the history of changes: who has changed what by the Job API, when and why.
Changes of definitions come with their difference.

The history is in the NATS server, which keeps the latest 200 changes of each job, queue
or other object for 180 days. Temporal is not needed.`
	i.natsFlag(cmd)
	return cmd
}

// changeFilters are the flags that choose changes.
type changeFilters struct {
	queue, kind, verb, caller string
	since, until              time.Time
}

func (f *changeFilters) query(jobID string) *query {
	q := &query{}
	for field, value := range map[string]string{"job_id": jobID, "queue": f.queue, "kind": f.kind, "verb": f.verb, "caller": f.caller} {
		if value != "" {
			q.is(field, value)
		}
	}
	q.bound("change_time", f.since, f.until)
	return q
}

func (i *invocation) changesListCommand() *cobra.Command {
	var filter changeFilters
	var page paging
	var difference bool
	cmd := &cobra.Command{
		Use:   "list [JOB]",
		Short: "List changes",
		Long: `list shows the changes of a job, or of everything, the latest first. Those of a job
include what was done to its runs and bookmarks. What jobs do to other jobs is not among
them.`,
		Args:              arguments("[JOB]"),
		ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := page.check(cmd); err != nil {
				return err
			}
			jobID := ""
			if len(args) > 0 {
				jobID = args[0]
			}
			if jobID != "" && filter.queue != "" {
				return misuse(cmd, "give either JOB or --queue")
			}
			list, err := listSome(cmd.Context(), i.api.Changes.ListChanges, &jobsv1.ListChangesRequest{
				Filter: filter.query(jobID).String(), PageToken: page.token,
			}, page.limit, func(r *jobsv1.ListChangesResponse) int { return len(r.GetChanges()) })
			if err != nil {
				return err
			}
			i.noteEmpty("change", len(list.GetChanges()))
			err = i.emit(list, func(w io.Writer) error { return i.writeChanges(w, list.GetChanges(), difference) })
			i.noteMore(list.GetNextPageToken())
			return err
		},
	}
	flags := cmd.Flags()
	flags.Var(nameValue{&filter.queue}, "queue", "only changes of this queue")
	flags.Var(nameValue{&filter.kind}, "kind", "only changes of this kind of object: job, run, queue, ...")
	flags.Var(nameValue{&filter.verb}, "verb", "only what this verb did, such as pause-job")
	flags.Var(nameValue{&filter.caller}, "by", "only what this caller did")
	flags.Var(sinceValue{&filter.since, i.Now}, "since", "only changes since: 2026-05-01T12:00:00Z, or PT1H for the last hour")
	flags.Var(sinceValue{&filter.until, i.Now}, "until", "only changes before")
	flags.BoolVar(&difference, "diff", false, "show how definitions changed")
	page.register(cmd, "changes", 20)
	return cmd
}

// writeChanges writes changes as a table, or each with its difference.
func (i *invocation) writeChanges(w io.Writer, changes []*jobsv1.Change, difference bool) error {
	if difference {
		for _, c := range changes {
			if _, err := fmt.Fprintf(w, "%s  %s  %s  %s: %s\n%s", utc(toTime(c.GetChangeTime())), clean(c.GetCaller()), c.GetVerb(),
				clean(changed(c)), clean(withReason(c)), indentLines(c.GetDifference())); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable("TIME", "CALLER", "VERB", "OBJECT", "RESULT", "REASON")
	for _, c := range changes {
		t.add(i.when(toTime(c.GetChangeTime())), c.GetCaller(), c.GetVerb(), changed(c), c.GetResult(), c.GetReason())
	}
	return t.write(w)
}

// changed is what was changed.
func changed(c *jobsv1.Change) string {
	text := c.GetKind()
	if c.GetObject() != "" {
		text += " " + c.GetObject()
	}
	if c.GetDetail() != "" && c.GetKind() != "run" {
		text += " " + c.GetDetail()
	}
	return text
}

// indentLines is a text whose lines are set in. It is shown as it is, but for control characters.
func indentLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + clean(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String()
}

func withReason(c *jobsv1.Change) string {
	if c.GetReason() == "" {
		return c.GetResult()
	}
	return c.GetResult() + " (" + c.GetReason() + ")"
}
