package cli

import (
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

func (i *invocation) schemaCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of jobs files",
		Long: `schema prints a JSON schema of jobs files, with the job types of this program. Editors
use it to complete and check jobs files:

  starter schema > jobs.schema.json

Editors that use Taplo take the schema that the first line of a file names:

  #:schema ./jobs.schema.json

"validate" finds more: rules for several keys together, and for durations and owners.
With --markdown the command prints the job reference.`,
		Args: arguments(),
		RunE: func(*cobra.Command, []string) error {
			generate := jobsfile.Schema
			if markdown {
				generate = jobsfile.Reference
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
	return cmd
}
