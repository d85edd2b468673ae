package teardown

import (
	"context"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// listSize is how many resources are asked for at a time: an answer has at most 4 MiB.
const listSize = 200

// lists are lists of the platform that a stage has read.
type lists struct {
	organizations []*platformv1.Organization // all of them
	stations      []*platformv1.Station      // of all organizations
	configs       []*platformv1.IntegrationConfig
}

// allOrganizations lists all organizations, those that are marked as deleted too.
func (t *teardown) allOrganizations(ctx context.Context) ([]*platformv1.Organization, error) {
	if t.organizations != nil {
		return t.organizations, nil
	}
	err := platform.Pages(func(token string) (string, error) {
		page, err := t.Platform.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{
			PageSize: listSize, PageToken: token, ShowDeleted: true,
		})
		t.organizations = append(t.organizations, page.GetOrganizations()...)
		return page.GetNextPageToken(), err
	})
	return t.organizations, platform.Explain(err)
}

// allStations lists the stations of all organizations.
func (t *teardown) allStations(ctx context.Context) (_ []*platformv1.Station, err error) {
	if t.stations == nil {
		t.stations, err = t.Platform.Stations(ctx)
	}
	return t.stations, err
}

// allConfigs lists the integration configs of all organizations.
func (t *teardown) allConfigs(ctx context.Context) ([]*platformv1.IntegrationConfig, error) {
	if t.configs != nil {
		return t.configs, nil
	}
	err := platform.Pages(func(token string) (string, error) {
		page, err := t.Platform.Integrations.ListIntegrationConfigs(ctx, &platformv1.ListIntegrationConfigsRequest{PageSize: listSize, PageToken: token})
		t.configs = append(t.configs, page.GetIntegrationConfigs()...)
		return page.GetNextPageToken(), err
	})
	return t.configs, platform.Explain(err)
}

// ownConfigs lists the ids of the organization's integration configs.
func (t *teardown) ownConfigs(ctx context.Context) ([]string, error) {
	configs, err := t.allConfigs(ctx)
	var ids []string
	for _, c := range configs {
		if c.GetOrganizationId() == t.organization.GetId() {
			ids = append(ids, c.GetId())
		}
	}
	return ids, err
}

// checkSlug blocks the stage if another organization has the slug, so that things which
// carry nothing else might be its.
func (t *teardown) checkSlug(ctx context.Context) error {
	organizations, err := t.allOrganizations(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, o := range organizations {
		if o.GetId() != t.organization.GetId() && o.GetSlug() == t.organization.GetSlug() {
			others = append(others, o.GetId())
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		t.stage.Block("organization %s has the slug %s too, and nothing else tells their data apart: give it another slug",
			strings.Join(others, ", "), t.organization.GetSlug())
	}
	return nil
}
