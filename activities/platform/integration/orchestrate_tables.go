package integration

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// longestSearch is the longest wait between two discoveries for a station without tables.
const longestSearch = time.Hour

// search is the search for the tables of the config's station. Nobody tells when the first
// points of a table arrive: tables are discovered after waits that double, for as long as
// the config is ready, and at least every longestSearch while there are none.
type search struct {
	// Version of the config that the search is for: another one may have other tables.
	Version int64     `json:"version,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Asked   time.Time `json:"asked,omitzero"`
	Found   bool      `json:"found,omitempty"` // the platform has tables of the station
}

// due says whether a discovery is due if the station has tables, and if it has none.
func (s search) due(now time.Time, first time.Duration) (some, none bool) {
	last := s.Since
	if s.Asked.After(last) {
		last = s.Asked
	}
	wait := max(last.Sub(s.Since), first)
	waited := now.Sub(last)
	return waited >= wait, waited >= min(wait, max(longestSearch, first))
}

// seekTables asks for a discovery when one is due. The jobs go on if that fails.
func (o *orchestration) seekTables(ctx context.Context) {
	if o.station == "" {
		return
	}
	now := time.Now()
	if o.tables.Version != o.version {
		o.tables = search{Version: o.version, Since: now}
	}
	some, none := o.tables.due(now, o.spec.CheckEvery.Std())
	if !none || o.tables.Found && !some {
		return
	}
	if !o.tables.Found {
		answer, err := o.platform.Tables.ListTableInfos(ctx, &platformv1.ListTableInfosRequest{StationId: o.station, PageSize: 1})
		o.tables.Found = err == nil && len(answer.GetTableInfos()) > 0
		if o.tables.Found && !some {
			return
		}
	}
	if _, err := o.platform.Tables.RequestTableDiscovery(ctx, &platformv1.RequestTableDiscoveryRequest{StationId: o.station}); err != nil {
		o.Logger().Warn("a discovery of tables cannot be asked for", "station", o.station, "error", platform.Explain(err))
	} else {
		o.Count("discoveries_requested", 1)
	}
	o.tables.Asked = now
}
