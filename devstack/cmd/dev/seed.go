package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// seedText is what an empty Platform API gets: an organization with the configs of its
// integrations, and at the end their types. The addresses of servers in it are the usual ones.
//
//go:embed seed.json
var seedText string

// seedTimeout bounds the writing of the seed.
const seedTimeout = 30 * time.Second

// seed fills the reference Platform API if it has no integration type. These are written
// last: a seed that was cut off is written again. What users change afterwards stays.
func seed(ctx context.Context, info stack.Info) error {
	ctx, cancel := context.WithTimeout(ctx, seedTimeout)
	defer cancel()
	config := platform.Config{URL: info.Platform.URL, Token: info.Platform.Token}
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
	resources, err := readSeed(info)
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

// readSeed reads the seed, with the servers where they are now.
func readSeed(info stack.Info) ([]*platformv1.Resource, error) {
	var texts []json.RawMessage
	if err := json.Unmarshal([]byte(atPresent(info, seedText)), &texts); err != nil {
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
