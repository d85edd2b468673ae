package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api/plantext"
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
  ! unmanaged: it has a job's name, and starter did not create it; or Temporal was
    too busy to answer for the job
  = paused by itself after too many failures: shown, but not drift

One-shot and queued jobs are left out, because they end by themselves. "apply" undoes
edits and deletions. It keeps pauses unless --reset-pauses is given.

Exit codes: 0 all is as it was applied, 1 error or a job that could not be read, 2
drift.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			drift, err := i.api.JobSets.GetDrift(cmd.Context(), &jobsv1.GetDriftRequest{Provider: string(job.ProviderTOML)})
			if err != nil {
				return err
			}
			if err := i.emit(drift, func(w io.Writer) error { return i.writeLines(w, plantext.OfDrift(drift)) }); err != nil {
				return err
			}
			if err := plantext.UnreadError(len(drift.GetUnread())); err != nil {
				return err
			}
			if plantext.Drifted(drift) {
				return errChanges
			}
			return nil
		},
	}
}
