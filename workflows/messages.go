package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// handle installs the handler of a message. It must not wait: an update that is
// accepted but unfinished would fail at continue-as-new. Validate may be nil; a
// message that it refuses leaves no trace in the history.
func handle[In, Out any](ctx workflow.Context, m contract.Message[In, Out], apply func(In) Out, validate func(In) error) error {
	options := workflow.UpdateHandlerOptions{}
	if validate != nil {
		options.Validator = func(_ workflow.Context, in In) error { return validate(in) }
	}
	err := workflow.SetUpdateHandlerWithOptions(ctx, string(m), func(_ workflow.Context, in In) (Out, error) {
		return apply(in), nil
	}, options)
	if err != nil {
		return fmt.Errorf("handle message %s: %w", string(m), err)
	}
	return nil
}
