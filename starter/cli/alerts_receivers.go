package cli

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (i *invocation) alertsTestCommand() *cobra.Command {
	return withoutServer(&cobra.Command{
		Use:   "test FILE",
		Short: "Send a message to all receivers of a watchdog's file",
		Long: `test reads a file such as watchdog.toml, with the secrets that it names, and sends a
message of no alert to all its receivers. A receiver that does not answer is tried six
times, within about a minute. The heartbeat is not called.`,
		Args:              arguments(argumentFile),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			outcomes, err := i.backend().TestReceivers(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			failed := 0
			t := newTable("RECEIVER", "RESULT")
			for _, o := range outcomes {
				if t.add(o.Receiver, cmp.Or(o.Error, "taken")); o.Error != "" {
					failed++
				}
			}
			if err := i.emit(outcomes, func(w io.Writer) error { return t.write(w) }); err != nil || failed == 0 {
				return err
			}
			return fmt.Errorf("%d of %s took no message", failed, plural(len(outcomes), "receiver", "receivers"))
		},
	})
}
