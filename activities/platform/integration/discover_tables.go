package integration

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// DiscoverTablesType is the name of the job type.
const DiscoverTablesType = "DiscoverAndSyncTables"

// listSize is how many resources are asked for at a time.
const listSize = 1000

// DiscoverTables makes the job type DiscoverAndSyncTables.
//
// It reads the measurements of the organization's stations from every mirror, and tells
// the platform which tables, fields and types there are. A measurement that may be that of
// another station of the platform, or of none, is nobody's: the result names it. A table
// that is as it was told is not written. A table that is gone stays with the platform: the result and the log of
// the station's integration configs name it.
// A nil client is enough to describe it.
func DiscoverTables(client *platform.Client) job.Type {
	return job.NewType(DiscoverTablesType, job.WorkerBackend,
		"Tells the platform which tables, fields and types InfluxDB has for the stations of an organization.",
		func(ctx context.Context, run job.Run, spec DiscoverSpec) (job.Result, error) {
			if err := platform.Need(client); err != nil {
				return job.Result{}, err
			}
			return discoverTables(ctx, run, client, spec)
		}, job.ModeQueued, job.ModeRecurring, job.ModeOneShot)
}

func discoverTables(ctx context.Context, run job.Run, client *platform.Client, spec DiscoverSpec) (job.Result, error) {
	d := &discovery{run: run, spec: spec, client: client, counts: map[string]int64{}}
	if err := d.openMirrors(); err != nil {
		return job.Result{}, err
	}
	err := d.discover(ctx)
	return d.result(), err
}

// discovery is one run.
type discovery struct {
	run     job.Run
	spec    DiscoverSpec
	client  *platform.Client
	mirrors []mirror
	counts  map[string]int64
	told    []string // what people should know, the first of it
}

type mirror struct {
	influx.Mirror
	config influx.Config
}

func (d *discovery) openMirrors() error {
	for _, m := range d.spec.All() {
		config, err := m.Reach(d.run)
		if err != nil {
			return err
		}
		d.mirrors = append(d.mirrors, mirror{Mirror: m, config: config})
	}
	return nil
}

func (d *discovery) discover(ctx context.Context) error {
	all, err := d.client.Stations(ctx)
	if err != nil {
		return err
	}
	byDatabase := map[string][]*platformv1.Station{}
	for _, s := range all {
		if s.GetOrganizationId() == d.spec.OrganizationID && (d.spec.StationID == "" || s.GetId() == d.spec.StationID) {
			database := cmp.Or(d.spec.Database, s.GetDatabase(), d.spec.Location)
			byDatabase[database] = append(byDatabase[database], s)
		}
	}
	for _, database := range slices.Sorted(maps.Keys(byDatabase)) {
		owners := influx.OwnersOf(database, d.sharing(database, all))
		if err := d.database(ctx, database, owners, byDatabase[database]); err != nil {
			return err
		}
	}
	return nil
}

// sharing are the stations whose points may be in a database, on any of the mirrors.
func (d *discovery) sharing(database string, all []*platformv1.Station) []*platformv1.Station {
	return slices.DeleteFunc(slices.Clone(all), func(s *platformv1.Station) bool {
		return !slices.ContainsFunc(d.mirrors, func(m mirror) bool {
			return cmp.Or(m.Database, s.GetDatabase(), d.spec.Location) == cmp.Or(m.Database, database)
		})
	})
}

// database brings the tables of stations in line with what the mirrors have in a database.
func (d *discovery) database(ctx context.Context, database string, of influx.Owners, stations []*platformv1.Station) error {
	sources, uncertain, err := d.read(ctx, database, of, stations)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(sources, func(s source) bool { return s.found != nil }) {
		// A station that has not sent anything yet has none, and nothing is gone.
		d.counts["databases_missing"]++
		d.counts["stations"] += int64(len(stations))
		d.report("no mirror has the database %s", d.databaseName(database))
		return nil
	}
	of = of.Among(uncertain)
	tables, more := d.tables(database, of, sources)
	d.reportUncertain(database, of, append(uncertain, more...))
	for _, s := range stations {
		if job.Stopped(d.run) {
			return job.ErrStopped
		}
		if err := d.sync(ctx, s, tables[s.GetId()]); err != nil {
			return err
		}
		d.counts["stations"]++
		d.run.Checkpoint(job.Progress{Done: d.counts["stations"], Message: d.message()}, nil)
	}
	return nil
}

// databaseName is the name that a database has on the first mirror.
func (d *discovery) databaseName(database string) string {
	return cmp.Or(d.mirrors[0].Database, database)
}

// read asks all mirrors for the measurements of a database that are those of stations.
// Uncertain are measurements that are no station's, or maybe that of several.
func (d *discovery) read(ctx context.Context, database string, of influx.Owners, stations []*platformv1.Station) (sources []source, uncertain []string, err error) {
	sources = make([]source, len(d.mirrors))
	var mu sync.Mutex
	group, within := job.NewGroup(ctx)
	for i, m := range d.mirrors {
		group.Go(func() error {
			sources[i].mirror = m.Name
			found, err := influx.Fields(within, m.config, cmp.Or(m.Database, database), func(measurement string) bool {
				owner, _ := of.Table(measurement)
				if owner == nil {
					mu.Lock()
					uncertain = append(uncertain, measurement)
					mu.Unlock()
				}
				return slices.Contains(stations, owner)
			})
			if errors.Is(err, influx.ErrNoDatabase) {
				return nil
			}
			sources[i].found = found
			return m.Explain(d.spec.Location, err)
		})
	}
	err = group.Wait()
	return sources, uncertain, err
}
