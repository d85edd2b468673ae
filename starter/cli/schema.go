package cli

import (
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/starter/reference"
)

func (i *invocation) schemaCommand() *cobra.Command {
	var markdown, errors, operation bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of jobs files",
		Long: `schema prints a JSON schema of jobs files, with the job types of this program. Editors
use it to complete and check jobs files:

  starter schema > jobs.schema.json

Editors that use Taplo take the schema that the first line of a file names:

  #:schema ./jobs.schema.json

"validate" finds more: rules for several keys together, and for durations and owners.
With --markdown the command prints the job reference, with --errors that of error classes,
with --reference tables of commands, flags, variables, roles, metrics, alerts, statuses and
bounds.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			generate := jobsfile.Schema
			switch {
			case markdown:
				generate = jobsfile.Reference
			case errors:
				generate = func([]job.Type) ([]byte, error) { return reference.Errors(), nil }
			case operation:
				generate = func([]job.Type) ([]byte, error) { return reference.Tables(cmd.Root()), nil }
			}
			text, err := generate(i.Types)
			if err != nil {
				return err
			}
			_, err = i.Stdout.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the job reference, in Markdown")
	cmd.Flags().BoolVar(&errors, "errors", false, "print the reference of error classes, in Markdown")
	cmd.Flags().BoolVar(&operation, "reference", false, "print tables of commands, flags, roles, metrics, alerts and bounds, in Markdown")
	cmd.MarkFlagsMutuallyExclusive("markdown", "errors", "reference")
	return cmd
}
