package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is how long a program may take to tell its health.
const healthTimeout = 5 * time.Second

func (i *invocation) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health URL",
		Short: "Ask a worker or a server for its health",
		Long: `health asks for /livez or /readyz of a worker or of "serve", where there is no other
program that could, as in the image. The exit code is 0 if the answer is 200.`,
		Args:              arguments("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := health(cmd.Context(), args[0])
			if err == nil {
				_, err = fmt.Fprintln(i.out(), said)
			}
			return err
		},
	}
}

// health is what the program says of itself.
func health(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	const most = 4096
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return "", err
	}
	said := clean(strings.TrimSpace(string(text)))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, said)
	}
	return said, nil
}
