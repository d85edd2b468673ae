package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func (i *invocation) driftCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "drift",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Show what was changed by hand since the last apply",
		Long: `drift compares the last apply with Temporal, and changes nothing. It reads no jobs
file. A change in the Web UI or with the Temporal CLI is drift; a change in the file
is not.

  ~ edited, paused or resumed, with every value that was changed
  - the schedule was deleted, or the continuous job was stopped
  ! unmanaged: it has a job's name, and starter did not create it
  = paused by itself after too many failures: shown, but not drift

One-shot and queued jobs are left out, because they end by themselves. "apply" undoes
edits and deletions. It keeps pauses unless --reset-pauses is given.

Exit codes: 0 all is as it was applied, 1 error, 2 drift.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			drift, err := schedules.New(c).Drift(cmd.Context(), job.ProviderTOML)
			if err != nil {
				return err
			}
			if err := i.emit(drift, func(w io.Writer) error { return i.writeDrift(w, drift) }); err != nil {
				return err
			}
			if !drift.Empty() {
				return errChanges
			}
			return nil
		},
	}
}

// drifts are the kinds of drift for people, with their signs.
var drifts = map[schedules.DriftKind]struct {
	sign  string
	color color
	text  string
}{
	schedules.DriftEdited:  {"~", yellow, "edited"},
	schedules.DriftPaused:  {"~", yellow, "paused"},
	schedules.DriftResumed: {"~", yellow, "resumed, though it is declared as paused"},
	schedules.DriftDeleted: {"-", red, "its schedule was deleted"},
	schedules.DriftStopped: {"-", red, "was stopped"},
}

func (i *invocation) writeDrift(w io.Writer, drift *schedules.Drift) error {
	lines := &lineWriter{w: w}
	for _, one := range drift.Jobs {
		kind := drifts[one.Kind]
		text := fmt.Sprintf("%s %s  %s  %s", kind.sign, one.JobID, one.Mode, kind.text)
		if one.Note != "" {
			text += ": " + clean(one.Note)
		}
		lines.printf("%s", i.paint(kind.color, text))
		lines.fields(one.Fields)
	}
	for _, one := range drift.Failing {
		lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s  %s  paused by itself: %s", one.JobID, one.Mode, clean(one.Note))))
	}
	for _, name := range drift.Foreign {
		lines.printf("%s", i.paint(magenta, fmt.Sprintf("! %s is unmanaged: it has a job's name, and starter did not create it", clean(name))))
	}
	if !drift.Empty() || len(drift.Failing) > 0 {
		lines.printf("")
	}
	lines.printf("Namespace %s against the last apply: %s.", drift.Namespace, driftTotal(drift))
	return lines.err
}

func driftTotal(drift *schedules.Drift) string {
	if drift.Applied == 0 && drift.Empty() {
		return "nothing was applied yet"
	}
	parts := []string{plural(len(drift.Jobs), "job has drifted", "jobs have drifted")}
	if n := len(drift.Foreign); n > 0 {
		parts = append(parts, plural(n, "resource is unmanaged", "resources are unmanaged"))
	}
	return fmt.Sprintf("%s, of %d applied", strings.Join(parts, ", "), drift.Applied)
}
