package cli

import (
	"io"

	"github.com/spf13/cobra"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/top"
)

func (i *invocation) topCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch all jobs, and what needs you, in the terminal",
		Long: `top shows alerts, jobs with their latest runs, queues, loads, workers and integrations, and
follows their changes. "?" lists the keys. If standard output is no terminal, top
writes one snapshot as text.

Jobs that have ended, and items of queues, are left out. The key "a" shows them, and so
does --all.`,
		Args: arguments(),
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			i.fullScreen = i.format == formatTable && i.IsTerminal(i.Stdout) && i.IsTerminal(i.Stdin)
			return i.start(cmd, args) // The clients that it makes are silent then.
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if i.fullScreen {
				return top.Run(cmd.Context(), top.Config{
					All: all, Clients: i.api, Colors: i.colors(), In: i.Stdin, Location: i.Location, Now: i.Now, Out: i.Stdout,
				})
			}
			response, err := i.api.Overview.GetOverview(cmd.Context(), &jobsv1.GetOverviewRequest{})
			if err != nil {
				return err
			}
			return i.emit(response, func(w io.Writer) error { return i.writeOverview(w, response.GetOverview(), all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also jobs that have ended, and items of queues")
	i.natsFlag(cmd)
	return cmd
}

func (i *invocation) writeOverview(w io.Writer, o *jobsv1.Overview, all bool) error {
	left, err := top.Write(w, o, i.Now(), i.Location, widthOf(w), all)
	noteLeft(w, left)
	return err
}

// colors reports whether standard output has colors.
func (i *invocation) colors() bool { return i.paint(red, "") != "" }
