package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/replay"
)

func (i *invocation) replayCommand() *cobra.Command {
	since, most := job.Duration(24*time.Hour), 1000
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Replay the histories of the server with this program's workflows",
		Long: `replay runs the histories that the Temporal server has with the workflows of this
program, as they were when it was built. It says which histories the code does not fit,
and where. It changes nothing, and needs no worker.

Run the starter of a new build before its workers take runs. All open runs are replayed,
and those that ended within --since: of each workflow type, the latest ones.

Exit codes: 0 the code fits all histories, 1 it does not, or they cannot be read.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 0 {
				return misuse(cmd, "--most %d is less than 0", most)
			}
			i.quiet()
			done := i.waiting("the histories")
			report, err := replay.Run(cmd.Context(), replay.Options{Temporal: i.site.Temporal, Since: i.Now().Add(-since.Std()), Most: most})
			done()
			if err != nil {
				return err
			}
			if err := i.emit(report, func(w io.Writer) error { return i.writeReplay(w, report) }); err != nil {
				return err
			}
			if n := len(report.Different); n > 0 {
				return fmt.Errorf("this build does not fit %s", plural(n, "history", "histories"))
			}
			return nil
		},
	}
	cmd.Flags().Var(durationOf(&since), "since", "also runs that ended within this time")
	cmd.Flags().IntVar(&most, "most", most, "at most so many histories of each workflow type; 0: all")
	return cmd
}

func (i *invocation) writeReplay(w io.Writer, report *replay.Report) error {
	i.noteEmpty("history", len(report.Replayed))
	t := newTable("WORKFLOW TYPE", "REPLAYED")
	for _, name := range slices.Sorted(maps.Keys(report.Replayed)) {
		t.add(name, fmt.Sprint(report.Replayed[name]))
	}
	if err := t.write(w); err != nil {
		return err
	}
	lines := &lineWriter{w: w}
	for _, d := range report.Different {
		state := "ended"
		if d.Open {
			state = "under way"
		}
		lines.printf("%s", i.paint(red, fmt.Sprintf("%s, run %s (%s): %s", clean(d.WorkflowID), d.RunID, state, clean(d.Where))))
	}
	return lines.err
}
