package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) reverseSyncCommand() *cobra.Command {
	cmd := group("reverse-sync", "Bring the metadata of Release 2 in line with Release 3",
		i.reverseSyncPlanCommand(), i.reverseSyncRunCommand(), i.reverseSyncConflictsCommand())
	cmd.Long = `reverse-sync writes the entities of Release 3 into the documents of Release 2. plan
and run have a backend worker run a job of each of the types ReverseSync...Metadata
once. At a server that knows its callers they need the role admin. Without --server,
conflicts are read from the NATS server of DENDRA_NATS_URL, or --nats.

A document that someone has edited in Release 2 is in conflict, and left alone.`
	i.natsFlag(cmd)
	return cmd
}

// syncKinds are the kinds of entities with their job types, in the order in which their
// documents refer to each other.
var syncKinds = []struct{ name, typeName string }{
	{"vocabulary", "ReverseSyncVocabularyMetadata"}, {"organization", "ReverseSyncOrganizationMetadata"},
	{"site", "ReverseSyncSiteMetadata"}, {"thing_type", "ReverseSyncThingTypeMetadata"},
	{"station", "ReverseSyncStationMetadata"}, {"datastream", "ReverseSyncDatastreamMetadata"},
}

// kindNames are the names of all kinds, in their order.
func kindNames() []string {
	var names []string
	for _, kind := range syncKinds {
		names = append(names, kind.name)
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

// syncReport is the output of a run of reverse sync.
type syncReport struct {
	Kind        string           `json:"kind"`
	Entities    int              `json:"entities"`
	Created     int              `json:"created"`
	Updated     int              `json:"updated"`
	Conflicts   int              `json:"conflicts"`
	Gone        int              `json:"gone"`
	Differences []syncDifference `json:"differences"`
	More        int              `json:"more"`
}

type syncDifference struct {
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"`
	Fields []struct {
		Path     string          `json:"path"`
		Release2 json.RawMessage `json:"release_2"`
		Release3 json.RawMessage `json:"release_3"`
		Edited   bool            `json:"edited"`
	} `json:"fields"`
	Conflict *struct {
		Reason   string `json:"reason"`
		Message  string `json:"message"`
		EditedBy string `json:"edited_by"`
		EditedAt string `json:"edited_at"`
	} `json:"conflict"`
}

// reverseSync runs the jobs of the kinds. A kind that fails ends it: what comes later may
// refer to what is not there.
func (i *invocation) reverseSync(cmd *cobra.Command, only string, dryRun bool) error {
	var reports []syncReport
	var err error
	runs := &jobsv1.ListRunsResponse{}
	for _, kind := range syncKinds {
		if only != "" && kind.name != only {
			continue
		}
		var run *jobsv1.Run
		run, err = i.runOnce(cmd.Context(), kind.typeName, map[string]any{"dry_run": dryRun})
		var report syncReport
		if run.GetOutput() != nil {
			err = errors.Join(err, decodeValue(run.GetOutput(), &report))
			reports, runs.Runs = append(reports, report), append(runs.Runs, run)
		}
		if err != nil {
			break
		}
	}
	if shown := i.emit(runs, func(w io.Writer) error { return i.writeSync(w, reports, dryRun) }); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	for _, r := range reports {
		if r.Conflicts > 0 || dryRun && r.Created+r.Updated > 0 {
			return errChanges
		}
	}
	return nil
}

// writeSync shows differences and the counts of each kind.
func (i *invocation) writeSync(w io.Writer, reports []syncReport, dryRun bool) error {
	if err := i.writeDifferences(w, reports); err != nil {
		return err
	}
	columns := []string{"KIND", "ENTITIES", "CREATED", "UPDATED", "IN CONFLICT", "GONE"}
	if dryRun {
		columns = []string{"KIND", "ENTITIES", "TO CREATE", "TO UPDATE", "IN CONFLICT", "GONE"}
	}
	t := newTable(columns...)
	for _, r := range reports {
		t.add(r.Kind, fmt.Sprint(r.Entities), fmt.Sprint(r.Created), fmt.Sprint(r.Updated), fmt.Sprint(r.Conflicts), fmt.Sprint(r.Gone))
	}
	return t.write(w)
}

func (i *invocation) writeDifferences(w io.Writer, reports []syncReport) error {
	lines, told := &lineWriter{w: w}, false
	for _, r := range reports {
		for _, d := range r.Differences {
			i.writeDifference(lines, d)
			told = true
		}
		if r.More > 0 {
			lines.printf("and %d more of kind %s", r.More, r.Kind)
		}
	}
	if told {
		lines.printf("")
	}
	return lines.err
}

func (i *invocation) writeDifference(lines *lineWriter, d syncDifference) {
	mark := map[string]struct {
		sign  string
		color color
	}{"create": {"+", green}, "update": {"~", yellow}, "conflict": {"!", red}, "gone": {"=", faint}}[d.Action]
	text := fmt.Sprintf("%s %s %s  %s", mark.sign, d.Kind, d.ID, d.Name)
	if c := d.Conflict; c != nil {
		text += "  " + conflictText(c.Reason, c.Message, c.EditedBy, c.EditedAt)
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
func conflictText(reason, message, editor, editTime string) string {
	switch reason {
	case "edited":
		return fmt.Sprintf("edited in Release 2 by %s at %s", editor, editTime)
	case "deleted":
		return "deleted in Release 2"
	case "slug":
		return message
	}
	return "refused: " + message
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
	conflicts, err := i.conflicts(cmd, only)
	if err != nil {
		return err
	}
	chosen := map[string][]any{} // by kind
	for _, id := range ids {
		at := slices.IndexFunc(conflicts.GetConflicts(), func(c *jobsv1.ReverseSyncConflict) bool { return c.GetId() == id })
		if at < 0 {
			return fmt.Errorf("there is no conflict about %s; starter reverse-sync conflicts lists those there are", clean(id))
		}
		kind := conflicts.GetConflicts()[at].GetKind()
		chosen[kind] = append(chosen[kind], id)
	}
	if count := plural(len(ids), "document", "documents"); !yes {
		if err := i.ask(cmd.Context(), fmt.Sprintf("Overwrite %s in Release 2?", count), "reverse-sync run", "to overwrite "+count, "nothing was overwritten"); err != nil {
			return err
		}
	}
	var reports []syncReport
	runs := &jobsv1.ListRunsResponse{}
	for _, kind := range syncKinds {
		if len(chosen[kind.name]) == 0 {
			continue
		}
		run, err := i.runOnce(cmd.Context(), kind.typeName, map[string]any{"overwrite": chosen[kind.name]})
		if err != nil {
			return err
		}
		var report syncReport
		if err := decodeValue(run.GetOutput(), &report); err != nil {
			return err
		}
		reports, runs.Runs = append(reports, report), append(runs.Runs, run)
	}
	if err := i.emit(runs, func(w io.Writer) error { return i.writeDifferences(w, reports) }); err != nil {
		return err
	}
	if slices.ContainsFunc(reports, func(r syncReport) bool { return r.Conflicts > 0 }) {
		return errChanges
	}
	return nil
}

// conflicts are those that were found, of one kind if it is given.
func (i *invocation) conflicts(cmd *cobra.Command, kind string) (*jobsv1.ListReverseSyncConflictsResponse, error) {
	return i.api.ReverseSync.ListReverseSyncConflicts(cmd.Context(), &jobsv1.ListReverseSyncConflictsRequest{Kind: kind})
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
			listed, err := i.conflicts(cmd, kind)
			if err != nil {
				return err
			}
			return i.emit(listed, func(w io.Writer) error {
				if i.noteEmpty("conflict", len(listed.GetConflicts())) {
					return nil
				}
				t := newTable("KIND", "ID", "SINCE", "FIELDS", "WHY")
				for _, c := range listed.GetConflicts() {
					t.add(c.GetKind(), c.GetId(), i.moment(toTime(c.GetFindTime())), strings.Join(c.GetFields(), ", "),
						conflictText(c.GetReason(), c.GetMessage(), c.GetEditor(), c.GetEditTime()))
				}
				return t.write(w)
			})
		},
	}
	kindFlag(cmd, &kind)
	return cmd
}
