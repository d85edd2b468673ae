package reconcile

import (
	"context"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Hints implements [Source] by the platform's change feed. It keeps no resume token: what
// happened before it is found by looking at everything once it has begun.
func (p *Platform) Hints(ctx context.Context, look func(configs ...string)) error {
	stream, err := p.client.Changes.StreamChanges(ctx, &platformv1.StreamChangesRequest{
		Kinds: []platformv1.ResourceKind{
			platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_CONFIG, platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_TYPE,
			platformv1.ResourceKind_RESOURCE_KIND_ORGANIZATION,
		},
		Start: &platformv1.StreamChangesRequest_Now{Now: true},
	})
	if err != nil {
		return platform.Explain(err)
	}
	defer func() { _ = stream.Close() }()
	for begun := false; ; begun = true {
		response, err := stream.Receive()
		if err != nil {
			return platform.Explain(err)
		}
		change := response.GetChange()
		switch {
		case !begun:
			look()
		case change == nil: // A checkpoint.
		case change.GetKind() != platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_CONFIG:
			look() // It may concern any config.
		case !slices.Equal(change.GetChangedKeys(), []string{"status"}): // Conditions are written by us and by orchestrators.
			look(change.GetResourceId())
		}
	}
}
