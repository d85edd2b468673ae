package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/server"
)

func (i *invocation) serveTokenCommand() *cobra.Command {
	var name, role string
	var expires job.Duration
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a token, and the line for the file of credentials",
		Long: `new makes a token of 256 random bits, and shows it this once. It also shows the
line to add to the file of "serve --credentials", which has the hash alone. To
revoke the token, remove the line.

Roles: viewer reads; operator also runs, stops, pauses and retries what is
declared; admin also declares, changes and deletes.`,
		Args:              arguments(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var until time.Time
			if expires != 0 {
				until = i.Now().Add(expires.Std()).Truncate(time.Second)
			}
			made, err := server.NewToken(name, role, until)
			if err != nil {
				return misuse(cmd, "--%s", err)
			}
			return i.emit(made, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Token, shown this once:\n  %s\n\nLine for the file of credentials:\n  %s\n", made.Token, made.Line)
				return err
			})
		},
	}
	cmd.Flags().Var(textValue{&name, "NAME"}, "name", "who will use it: it is in the audit log, and in reasons")
	cmd.Flags().Var(textValue{&role, "ROLE"}, "role", "viewer, operator or admin")
	cmd.Flags().Var(durationOf(&expires), "expires-in", "how long it is valid, such as P90D (default: until its line is removed)")
	completeFixed(cmd, "role", "viewer", "operator", "admin")
	return cmd
}
