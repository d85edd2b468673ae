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
	var name, role, addTo string
	var expires job.Duration
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a token, and the line for the file of credentials",
		Long: `new makes a token of 256 random bits, and shows it this once. It also shows the
line to add to the file of "serve --credentials", which has the hash alone. To
revoke the token, remove the line. With --add-to it adds the line itself; a file that
has a token of this name stays as it is, and no token is made.

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
			if addTo != "" {
				added, err := server.AddToken(addTo, name, made)
				if err != nil {
					return err
				}
				if !added {
					i.note("starter: %s has a token of %s: none is made", addTo, name)
					return nil
				}
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
	cmd.Flags().Var(textValue{&addTo, argumentFile}, "add-to", "file of credentials that gets the line; made if it is missing")
	completeFixed(cmd, "role", "viewer", "operator", "admin")
	return cmd
}
