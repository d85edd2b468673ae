package orchestrate

import (
	"context"
	"maps"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// pageSize is how many configs are asked for at a time: an answer has at most 4 MiB.
const pageSize = 100

// Read reads what the jobs of a config follow from.
func Read(ctx context.Context, api *platform.Client, config *platformv1.IntegrationConfig) (Input, error) {
	in := Input{Config: Config{ID: config.GetId()}, TypeID: config.GetTypeId()}
	own, err := registrations(ctx, api, &platformv1.ListIntegrationJobRegistrationsRequest{ConfigId: in.ID})
	if err != nil {
		return in, err
	}
	if len(own) > 0 {
		in.Config = own[0]
	}
	return in, in.readOthers(ctx, api, config)
}

// ReadWith is Read with registrations that are known, as of a config that is not enabled.
func ReadWith(ctx context.Context, api *platform.Client, config *platformv1.IntegrationConfig, own []*Registration) (Input, error) {
	in := Input{Config: Config{ID: config.GetId(), Registrations: own}, TypeID: config.GetTypeId()}
	return in, in.readOthers(ctx, api, config)
}

func (in *Input) readOthers(ctx context.Context, api *platform.Client, config *platformv1.IntegrationConfig) (err error) {
	for _, id := range References(config) {
		others, err := registrations(ctx, api, &platformv1.ListIntegrationJobRegistrationsRequest{ConfigId: id})
		if err != nil {
			return err
		}
		in.RefersTo = append(in.RefersTo, others...)
	}
	in.Referring, err = registrations(ctx, api, &platformv1.ListIntegrationJobRegistrationsRequest{ReferencesConfigId: in.ID})
	if err != nil {
		return err
	}
	in.Stations = map[string][]*platformv1.Station{}
	for _, id := range stationIDs(append(in.Referring, in.Config)...) {
		if in.Stations[id], err = api.StationsLike(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// References are the ids of the configs that a config refers to, in order.
func References(config *platformv1.IntegrationConfig) []string {
	ids := map[string]bool{}
	for _, value := range config.GetValues() {
		if id := value.GetConfigId(); id != "" && id != config.GetId() {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// registrations lists registrations by config, in the order of ids.
func registrations(ctx context.Context, api *platform.Client, request *platformv1.ListIntegrationJobRegistrationsRequest) ([]Config, error) {
	byConfig := map[string]*Config{}
	request.PageSize = pageSize
	err := platform.Pages(func(token string) (string, error) {
		request.PageToken = token
		page, err := api.Integrations.ListIntegrationJobRegistrations(ctx, request)
		for _, r := range page.GetRegistrations() {
			c := byConfig[r.GetConfigId()]
			if c == nil {
				c = &Config{ID: r.GetConfigId()}
				byConfig[c.ID] = c
			}
			c.Registrations = append(c.Registrations, r)
		}
		return page.GetNextPageToken(), err
	})
	var configs []Config
	for _, id := range slices.Sorted(maps.Keys(byConfig)) {
		configs = append(configs, *byConfig[id])
	}
	return configs, platform.Explain(err)
}
