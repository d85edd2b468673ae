package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// natsFlag adds the flag for the address of the pipeline's server.
func (i *invocation) natsFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().Var(textValue{&i.site.NATS, "URL"}, "nats", fmt.Sprintf("URL of the NATS server (default: $%s, else nats://127.0.0.1:4222)", servers.EnvNATS))
}
