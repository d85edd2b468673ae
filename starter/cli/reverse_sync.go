package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

func (i *invocation) reverseSyncCommand() *cobra.Command {
	cmd := group("reverse-sync", "Bring the metadata of Release 2 in line with Release 3",
		i.reverseSyncPlanCommand(), i.reverseSyncRunCommand(), i.reverseSyncConflictsCommand())
	cmd.Long = `reverse-sync writes the entities of Release 3 into the documents of Release 2. It
does once what jobs of the types ReverseSync...Metadata do on the backend worker,
with the same settings: DENDRA_PLATFORM_URL, DENDRA_PLATFORM_TOKEN,
DENDRA_RELEASE2_URL, DENDRA_RELEASE2_TOKEN, and the NATS server of
DENDRA_NATS_URL, or --nats. Temporal is not needed.

A document that someone has edited in Release 2 is in conflict, and left alone.`
	i.natsFlag(cmd)
	return cmd
}

func (i *invocation) openReverseSync(ctx context.Context) (*reversesync.Syncer, error) {
	client, err := i.connectPipeline(ctx)
	if err != nil {
		return nil, err
	}
	return reversesync.Open(ctx, i.Getenv, client)
}

// kindNames are the names of all kinds, in their order.
func kindNames() []string {
	var names []string
	for _, kind := range reversesync.Kinds() {
		names = append(names, kind.Name)
	}
	return names
}

func kindFlag(cmd *cobra.Command, kind *string) {
	cmd.Flags().Var(choose(kind, kindNames()...), "kind", "only this kind: "+strings.Join(kindNames(), ", "))
	completeFixed(cmd, "kind", kindNames()...)
}

func (i *invocation) reverseSyncPlanCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:         "plan",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Show what run would write, and what is in conflict",
		Long: `plan compares all entities of Release 3 with their documents, and writes nothing.

  + create     ~ update     ! in conflict, left alone     = not in Release 3, left alone

Of a field it shows the value in Release 2, then the one in Release 3. An edited field
is marked with !.

Exit codes: 0 all is in line, 1 error, 2 something is not in line.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return i.reverseSync(cmd, kind, true) },
	}
	kindFlag(cmd, &kind)
	return cmd
}

func (i *invocation) reverseSyncRunCommand() *cobra.Command {
	var kind string
	var overwrite []string
	var yes bool
	cmd := &cobra.Command{
		Use:         "run",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Write what is not in line, once",
		Long: `run compares all entities of Release 3 with their documents, and writes those that
are not in line. It shows what it wrote as plan does.

With --overwrite it writes the documents of these ids alone, which have to be in
conflict: what was edited in Release 2 is lost, and what was deleted comes back. It
asks first.

Exit codes: 0 all is in line, 1 error, 2 conflicts are left.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("overwrite") {
				return i.overwriteConflicts(cmd, kind, overwrite, yes)
			}
			return i.reverseSync(cmd, kind, false)
		},
	}
	kindFlag(cmd, &kind)
	cmd.Flags().StringSliceVar(&overwrite, "overwrite", nil, "ids of documents in conflict, with commas between them: write what Release 3 has over them")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// syncOutcome is what a plan or run found or did, as JSON.
type syncOutcome struct {
	DryRun      bool                     `json:"dry_run"`
	Kinds       []reversesync.Report     `json:"kinds"`
	Differences []reversesync.Difference `json:"differences"`
}

func (o *syncOutcome) add(d reversesync.Difference) { o.Differences = append(o.Differences, d) }

// count counts what was, or would be, done.
func (o *syncOutcome) count(action reversesync.Action) int {
	n := 0
	for _, d := range o.Differences {
		if d.Action == action {
			n++
		}
	}
	return n
}

func (i *invocation) reverseSync(cmd *cobra.Command, only string, dryRun bool) error {
	syncer, err := i.openReverseSync(cmd.Context())
	if err != nil {
		return err
	}
	outcome := syncOutcome{DryRun: dryRun, Kinds: []reversesync.Report{}, Differences: []reversesync.Difference{}}
	line, began := i.newProgress(), time.Now()
	for _, kind := range reversesync.Kinds() {
		if only != "" && kind.Name != only {
			continue
		}
		report, failed := syncer.Sync(cmd.Context(), kind, reversesync.Run{DryRun: dryRun, Take: outcome.add, Progress: func(r reversesync.Report) {
			if line.terminal {
				line.show(kind.Name+": "+r.String(), time.Since(began))
			}
		}})
		outcome.Kinds = append(outcome.Kinds, report)
		err = errors.Join(err, failed)
		if failed != nil && job.ClassOf(failed) != errclass.ReverseSyncFailed {
			break // What comes later may refer to what is not there.
		}
	}
	line.clear()
	if shown := i.emit(outcome, func(w io.Writer) error { return i.writeSync(w, outcome) }); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	if n := outcome.count(reversesync.ActionConflict); n > 0 || dryRun && len(outcome.Differences) > outcome.count(reversesync.ActionGone) {
		return errChanges
	}
	return nil
}

// writeSync shows differences and the counts of each kind.
func (i *invocation) writeSync(w io.Writer, outcome syncOutcome) error {
	lines := &lineWriter{w: w}
	for _, d := range outcome.Differences {
		i.writeDifference(lines, d)
	}
	if len(outcome.Differences) > 0 {
		lines.printf("")
	}
	if lines.err != nil {
		return lines.err
	}
	columns := []string{"KIND", "ENTITIES", "CREATED", "UPDATED", "IN CONFLICT", "GONE"}
	if outcome.DryRun {
		columns = []string{"KIND", "ENTITIES", "TO CREATE", "TO UPDATE", "IN CONFLICT", "GONE"}
	}
	t := newTable(columns...)
	for _, r := range outcome.Kinds {
		t.add(r.Kind, fmt.Sprint(r.Entities), fmt.Sprint(r.Created), fmt.Sprint(r.Updated), fmt.Sprint(r.Conflicts), fmt.Sprint(r.Gone))
	}
	return t.write(w)
}

func (i *invocation) writeDifference(lines *lineWriter, d reversesync.Difference) {
	mark := map[reversesync.Action]struct {
		sign  string
		color color
	}{
		reversesync.ActionCreate: {"+", green}, reversesync.ActionUpdate: {"~", yellow},
		reversesync.ActionConflict: {"!", red}, reversesync.ActionGone: {"=", faint},
	}[d.Action]
	text := fmt.Sprintf("%s %s %s  %s", mark.sign, d.Kind, d.ID, d.Name)
	if d.Conflict != nil {
		text += "  " + conflictText(*d.Conflict)
	}
	lines.printf("%s", i.paint(mark.color, clean(strings.TrimRight(text, " "))))
	for _, f := range d.Fields {
		edited := " "
		if f.Edited {
			edited = "!"
		}
		lines.printf("  %s %s: %s → %s", edited, f.Path, plantext.Value(string(f.Release2)), plantext.Value(string(f.Release3)))
	}
}

// conflictText is why a document is left alone.
func conflictText(c reversesync.Conflict) string {
	switch c.Reason {
	case reversesync.ReasonEdited:
		return fmt.Sprintf("edited in Release 2 by %s at %s", c.EditedBy, c.EditedAt)
	case reversesync.ReasonDeleted:
		return "deleted in Release 2"
	case reversesync.ReasonSlug:
		return c.Message
	case reversesync.ReasonRefused:
	}
	return "refused: " + c.Message
}

// overwriteConflicts writes what Release 3 has over documents in conflict.
func (i *invocation) overwriteConflicts(cmd *cobra.Command, only string, ids []string, yes bool) error {
	for _, id := range ids {
		if err := checkName(cmd, "--overwrite", id); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return misuse(cmd, "--overwrite %s", errEmpty)
	}
	syncer, err := i.openReverseSync(cmd.Context())
	if err != nil {
		return err
	}
	conflicts, err := syncer.Conflicts(cmd.Context())
	if err != nil {
		return err
	}
	chosen := make([]reversesync.Known, len(ids))
	for n, id := range ids {
		at := slices.IndexFunc(conflicts, func(c reversesync.Known) bool { return c.ID == id && (only == "" || c.Kind == only) })
		if at < 0 {
			return fmt.Errorf("there is no conflict about %s; starter reverse-sync conflicts lists those there are", clean(id))
		}
		chosen[n] = conflicts[at]
	}
	if count := plural(len(ids), "document", "documents"); !yes {
		if err := i.ask(cmd.Context(), fmt.Sprintf("Overwrite %s in Release 2?", count), "reverse-sync run", "to overwrite "+count, "nothing was overwritten"); err != nil {
			return err
		}
	}
	outcome := syncOutcome{Kinds: []reversesync.Report{}, Differences: []reversesync.Difference{}}
	for _, c := range chosen {
		kind, _ := reversesync.KindNamed(c.Kind)
		var d reversesync.Difference
		if d, err = syncer.SyncOne(cmd.Context(), kind, c.ID, true); err != nil {
			break
		}
		outcome.add(d)
	}
	shown := i.emit(outcome, func(w io.Writer) error {
		lines := &lineWriter{w: w}
		for _, d := range outcome.Differences {
			i.writeDifference(lines, d)
		}
		return lines.err
	})
	if err != nil || shown != nil {
		return errors.Join(err, shown)
	}
	if outcome.count(reversesync.ActionConflict) > 0 {
		return errChanges
	}
	return nil
}

func (i *invocation) reverseSyncConflictsCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "conflicts",
		Short: "List documents that are left alone",
		Long: `conflicts lists the documents that were in conflict when they were compared last.
plan --kind shows the values. A conflict ends when both releases agree again, or with
run --overwrite ID.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			syncer, err := i.openReverseSync(cmd.Context())
			if err != nil {
				return err
			}
			conflicts, err := syncer.Conflicts(cmd.Context())
			if err != nil {
				return err
			}
			if kind != "" {
				conflicts = slices.DeleteFunc(conflicts, func(c reversesync.Known) bool { return c.Kind != kind })
			}
			if i.format == formatTable && i.noteEmpty("conflict", len(conflicts)) {
				return nil
			}
			return i.emit(conflicts, func(w io.Writer) error {
				t := newTable("KIND", "ID", "SINCE", "FIELDS", "WHY")
				for _, c := range conflicts {
					t.add(c.Kind, c.ID, i.moment(c.Since), strings.Join(c.Fields, ", "), conflictText(c.Conflict))
				}
				return t.write(w)
			})
		},
	}
	kindFlag(cmd, &kind)
	return cmd
}
