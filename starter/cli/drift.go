package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
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
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			drift, err := clients.JobSets.GetDrift(cmd.Context(), &jobsv1.GetDriftRequest{Provider: string(job.ProviderTOML)})
			if err != nil {
				return err
			}
			if err := i.emit(drift, func(w io.Writer) error { return i.writeDrift(w, drift) }); err != nil {
				return err
			}
			if hasDrift(drift) {
				return errChanges
			}
			return nil
		},
	}
}

// hasDrift says that something is not as it was applied.
func hasDrift(drift *jobsv1.GetDriftResponse) bool {
	return len(drift.GetDrifts())+len(drift.GetForeign()) > 0
}

// drifts are the kinds of drift for people, with their signs.
var drifts = map[jobsv1.DriftKind]struct {
	sign  string
	color color
	text  string
}{
	jobsv1.DriftKind_DRIFT_KIND_EDITED:  {"~", yellow, "edited"},
	jobsv1.DriftKind_DRIFT_KIND_PAUSED:  {"~", yellow, "paused"},
	jobsv1.DriftKind_DRIFT_KIND_RESUMED: {"~", yellow, "resumed, though it is declared as paused"},
	jobsv1.DriftKind_DRIFT_KIND_DELETED: {"-", red, "its schedule was deleted"},
	jobsv1.DriftKind_DRIFT_KIND_STOPPED: {"-", red, "was stopped"},
}

func (i *invocation) writeDrift(w io.Writer, drift *jobsv1.GetDriftResponse) error {
	lines := &lineWriter{w: w}
	for _, one := range drift.GetDrifts() {
		kind := drifts[one.GetKind()]
		text := fmt.Sprintf("%s %s  %s  %s", kind.sign, one.GetJobId(), modeWord(one.GetMode()), kind.text)
		if one.GetNote() != "" {
			text += ": " + clean(one.GetNote())
		}
		lines.printf("%s", i.paint(kind.color, text))
		lines.fields(one.GetFields())
	}
	for _, one := range drift.GetFailing() {
		lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s  %s  paused by itself: %s", one.GetJobId(), modeWord(one.GetMode()), clean(one.GetNote()))))
	}
	for _, name := range drift.GetForeign() {
		lines.printf("%s", i.paint(magenta, fmt.Sprintf("! %s is unmanaged: it has a job's name, and starter did not create it", clean(name))))
	}
	if hasDrift(drift) || len(drift.GetFailing()) > 0 {
		lines.printf("")
	}
	lines.printf("Namespace %s against the last apply: %s.", drift.GetNamespace(), driftTotal(drift))
	return lines.err
}

func driftTotal(drift *jobsv1.GetDriftResponse) string {
	if drift.GetApplied() == 0 && !hasDrift(drift) {
		return "nothing was applied yet"
	}
	parts := []string{plural(len(drift.GetDrifts()), "job has drifted", "jobs have drifted")}
	if n := len(drift.GetForeign()); n > 0 {
		parts = append(parts, plural(n, "resource is unmanaged", "resources are unmanaged"))
	}
	return fmt.Sprintf("%s, of %d applied", strings.Join(parts, ", "), drift.GetApplied())
}
