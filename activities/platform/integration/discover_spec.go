package integration

import "github.com/dendrascience/dendra-jobs/internal/influx"

// DiscoverSpec is the spec of DiscoverAndSyncTables.
type DiscoverSpec struct {
	OrganizationID string `json:"organization_id" pattern:"^[0-9a-f]{24}$" example:"5b0f5f7a1c9d440000a1b2c3" help:"organization whose stations' tables are discovered"`
	StationID      string `json:"station_id,omitempty" help:"only the tables of this station"`
	influx.Servers
}
