package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
)

// missedSince is how far back missed starts are looked for by default.
const missedSince = 24 * time.Hour

// shownReports bounds the jobs whose accounts are summed up.
const shownReports = 10

func (i *invocation) listMissed(cmd *cobra.Command, filter *runFilters, limit int) error {
	for _, name := range filter.given(cmd) {
		if !slices.Contains([]string{"job", "type", "owner", "tag", "since"}, name) {
			return misuse(cmd, "--%s does not go with --missed", name)
		}
	}
	since := filter.since
	if since.IsZero() {
		since = i.Now().Add(-missedSince)
	}
	c, err := i.connect(cmd.Context())
	if err != nil {
		return err
	}
	ledger, err := c.Jobs.Missed(cmd.Context(), client.MissedFilter{
		JobID: filter.jobID, Type: filter.jobType(i), Owner: filter.owner.String(), Tags: filter.tags, Since: since,
	})
	if err != nil {
		return aboutJob(c, filter.jobID, err)
	}
	if err := filter.checkMatch(i, len(ledger.Jobs)); err != nil {
		return err
	}
	all := len(ledger.Missed)
	if limit > 0 && all > limit {
		ledger.Missed = ledger.Missed[:limit]
	}
	if err := i.emit(ledger, func(w io.Writer) error { return i.writeMissed(w, ledger) }); err != nil {
		return err
	}
	if all > len(ledger.Missed) {
		i.note("The latest %d of %d; --limit 0 lists all.", len(ledger.Missed), all)
	}
	return nil
}

func (i *invocation) writeMissed(w io.Writer, ledger *client.StartsReport) error {
	t := newTable("JOB", "DUE", "REASON", "DETAIL")
	for _, start := range ledger.Missed {
		t.add(start.JobID, i.when(start.Scheduled), string(start.Reason), start.Detail)
	}
	if err := t.write(w); err != nil {
		return err
	}
	if i.noteEmpty("recurring job", len(ledger.Jobs)) {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	shown := 0
	for _, account := range ledger.Jobs {
		if len(ledger.Jobs) > shownReports && account.Missed == 0 {
			continue
		}
		if shown++; shown > shownReports {
			continue
		}
		if err := i.writeAccount(w, account); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s since %s: %d without a run.\n",
		plural(len(ledger.Jobs), "recurring job", "recurring jobs"), i.moment(ledger.Since), countMissed(ledger))
	return err
}

func countMissed(ledger *client.StartsReport) int {
	missed := 0
	for _, account := range ledger.Jobs {
		missed += account.Missed
	}
	return missed
}

func (i *invocation) writeAccount(w io.Writer, a client.JobStarts) error {
	waiting := ""
	if a.Waiting > 0 {
		waiting = fmt.Sprintf(", %d waiting", a.Waiting)
	}
	_, err := fmt.Fprintf(w, "%s: %s since %s, %s%s, %d missed. The server counts, since %s: %d overlaps, %d outside the catch-up window, %d at a full buffer.\n",
		clean(a.JobID), plural(a.Scheduled, "start", "starts"), i.moment(a.From), plural(a.Runs, "run", "runs"), waiting, a.Missed,
		i.moment(a.ServerSince), a.ServerOverlap, a.ServerWindow, a.ServerBuffer)
	return err
}
