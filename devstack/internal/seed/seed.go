// Package seed fills the reference Platform API with something to see.
package seed

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// text is what an empty Platform API gets: an organization with the configs of its
// integrations, and at the end their types. The addresses of servers in it are the usual ones.
//
//go:embed seed.json
var text string

// timeout bounds the writing of the seed.
const timeout = 30 * time.Second

// Fill fills the reference Platform API if it has no integration type. These are written
// last: a seed that was cut off is written again. What users change afterwards stays. located
// gives a text with the servers where they are, for one with their usual addresses.
func Fill(ctx context.Context, config platform.Config, located func(text string) string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	api, err := platform.New(config)
	if err != nil {
		return err
	}
	types, err := api.Integrations.ListIntegrationTypes(ctx, &platformv1.ListIntegrationTypesRequest{PageSize: 1})
	if err != nil {
		return platform.Explain(err)
	}
	if len(types.GetIntegrationTypes()) > 0 {
		return nil
	}
	resources, err := read(located(text))
	if err != nil {
		return err
	}
	config.Token += ":dev" // A user, not the jobs.
	for _, resource := range resources {
		if _, err := platformtest.Put(ctx, config, resource, ""); err != nil {
			return err
		}
	}
	return nil
}

func read(text string) ([]*platformv1.Resource, error) {
	var texts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	resources := make([]*platformv1.Resource, len(texts))
	for i, text := range texts {
		resources[i] = &platformv1.Resource{}
		if err := protojson.Unmarshal(text, resources[i]); err != nil {
			return nil, fmt.Errorf("seed: resource %d: %w", i+1, err)
		}
	}
	return resources, nil
}
