package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	// maxTableName is what the platform takes.
	maxTableName = 200
	// upsertSize is how many tables are written at a time.
	upsertSize = 100
	// maxTold bounds the lines in the output of a run.
	maxTold = 50
	// maxNamed bounds the measurements in one line, and maxName the bytes of each.
	maxNamed, maxName = 10, 200
)

// foundTable is a table that the mirrors have.
type foundTable struct {
	*platformv1.TableInfo
	disputes []string // where the mirrors do not agree
}

// tables are the tables of a database that the mirrors have, by station. Uncertain are
// measurements that turned out to be nobody's.
func (d *discovery) tables(database string, of influx.Owners, sources []source) (tables map[string][]foundTable, uncertain []string) {
	measurements := map[string]bool{}
	for _, s := range sources {
		for measurement := range s.found {
			measurements[measurement] = true
		}
	}
	tables = map[string][]foundTable{}
	taken := map[string]string{} // measurements by the ids of their tables
	for _, measurement := range slices.Sorted(maps.Keys(measurements)) {
		station, name := of.Table(measurement)
		if station == nil {
			uncertain = append(uncertain, measurement)
			continue
		}
		id := station.GetId() + "/" + name
		problem := ""
		if other, found := taken[id]; found {
			problem = "measurement " + other + " has the same table name"
		} else if len(name) > maxTableName {
			problem = "the name of its table is too long"
		}
		if problem != "" {
			d.counts["left_out"]++
			d.report("measurement %s of database %s is left out: %s", measurement, database, problem)
			continue
		}
		taken[id] = measurement
		fields, disputes := tableOf(measurement, sources)
		tables[station.GetId()] = append(tables[station.GetId()], foundTable{
			TableInfo: &platformv1.TableInfo{Name: name, Database: d.databaseName(database), Measurement: measurement, Fields: fields},
			disputes:  disputes,
		})
	}
	return tables, uncertain
}

// reportUncertain tells of measurements that are nobody's.
func (d *discovery) reportUncertain(database string, of influx.Owners, measurements []string) {
	slices.Sort(measurements)
	measurements = slices.Compact(measurements)
	if len(measurements) == 0 {
		return
	}
	d.counts["uncertain"] += int64(len(measurements))
	var names []string
	for _, measurement := range measurements[:min(len(measurements), maxNamed)] {
		name := job.Cut(measurement, maxName)
		if stations, _ := of.Named(measurement); len(stations) > 0 {
			name += " (stations"
			for _, s := range stations {
				name += " " + s.GetSlug() + "=" + s.GetId()
			}
			name += ")"
		}
		names = append(names, name)
	}
	if more := len(measurements) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	d.report("measurements of database %s whose station is not certain (%d): %s", d.databaseName(database), len(measurements), strings.Join(names, ", "))
}

// finding is something about a table that people should know.
type finding struct {
	level platformv1.LogLevel
	text  string
	// of tells it from the same finding at another time.
	of string
}

// sync tells the platform of the tables of a station, as far as they differ from what it
// was told.
func (d *discovery) sync(ctx context.Context, station *platformv1.Station, tables []foundTable) error {
	known, err := d.listTables(ctx, station.GetId())
	if err != nil {
		return err
	}
	var changed []*platformv1.TableInfo
	var findings []finding
	add := func(level platformv1.LogLevel, of, format string, args ...any) {
		findings = append(findings, finding{level: level, of: of, text: fmt.Sprintf(format, args...)})
	}
	d.counts["tables"] += int64(len(tables))
	for _, table := range tables {
		name, was := table.GetName(), known[table.GetName()]
		delete(known, name)
		if len(table.disputes) > 0 {
			d.counts["disputed"]++
			add(platformv1.LogLevel_LOG_LEVEL_WARN, "", "The mirrors disagree about table %s: %s.", name, strings.Join(table.disputes, "; "))
		}
		if was == nil {
			d.counts["created"]++
			changed = append(changed, table.TableInfo)
			continue
		}
		difference := compareTables(was, table.TableInfo)
		if difference == nil {
			continue
		}
		level := platformv1.LogLevel_LOG_LEVEL_INFO
		if len(difference.retyped)+len(difference.removed) > 0 {
			level = platformv1.LogLevel_LOG_LEVEL_WARN
		}
		d.counts["changed"]++
		d.counts["fields_retyped"] += int64(len(difference.retyped))
		add(level, was.GetEtag(), "Table %s has changed: %s.", name, difference.text())
		changed = append(changed, table.TableInfo)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		d.counts["gone"]++
		add(platformv1.LogLevel_LOG_LEVEL_WARN, known[name].GetEtag(), "Table %s is gone: measurement %s is not there, or is no longer this station's.", name, known[name].GetMeasurement())
	}
	// First, since nothing tells of a change after it was written.
	if err := d.log(ctx, station, findings); err != nil {
		return err
	}
	return d.upsert(ctx, station, changed)
}

func (d *discovery) listTables(ctx context.Context, stationID string) (map[string]*platformv1.TableInfo, error) {
	known := map[string]*platformv1.TableInfo{}
	err := platform.Pages(func(token string) (string, error) {
		page, err := d.client.Tables.ListTableInfos(ctx, &platformv1.ListTableInfosRequest{
			StationId: stationID, PageSize: listSize, PageToken: token,
		})
		for _, table := range page.GetTableInfos() {
			known[table.GetName()] = table
		}
		return page.GetNextPageToken(), err
	})
	return known, platform.Explain(err)
}

func (d *discovery) upsert(ctx context.Context, station *platformv1.Station, tables []*platformv1.TableInfo) error {
	for some := range slices.Chunk(tables, upsertSize) {
		_, err := d.client.Tables.UpsertTableInfos(ctx, &platformv1.UpsertTableInfosRequest{StationId: station.GetId(), TableInfos: some})
		if err != nil {
			return platform.Explain(err)
		}
		d.counts["written"] += int64(len(some))
	}
	return nil
}

// log writes findings to the logs of the station's integration configs. The same finding
// is written once, however often it is made.
func (d *discovery) log(ctx context.Context, station *platformv1.Station, findings []finding) error {
	if len(findings) == 0 {
		return nil
	}
	for _, f := range findings {
		d.report("station %s: %s", station.GetSlug(), f.text)
	}
	configs, err := d.listConfigs(ctx, station.GetId())
	if err != nil {
		return err
	}
	var entries []*platformv1.LogEntry
	for _, config := range configs {
		for _, f := range findings {
			entries = append(entries, logEntry(d.run, logTables, config, f.level, f.text, f.of, f.text))
		}
	}
	return writeLog(ctx, d.client, entries)
}

func (d *discovery) listConfigs(ctx context.Context, stationID string) ([]string, error) {
	var ids []string
	err := platform.Pages(func(token string) (string, error) {
		page, err := d.client.Integrations.ListIntegrationConfigs(ctx, &platformv1.ListIntegrationConfigsRequest{
			StationId: stationID, PageSize: listSize, PageToken: token,
		})
		for _, config := range page.GetIntegrationConfigs() {
			ids = append(ids, config.GetId())
		}
		return page.GetNextPageToken(), err
	})
	return ids, platform.Explain(err)
}

// report notes a line for the log of the worker and the output of the run.
func (d *discovery) report(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	d.run.Logger().Warn("table discovery", "finding", line)
	if len(d.told) < maxTold {
		d.told = append(d.told, line)
	}
}

func (d *discovery) message() string {
	text := fmt.Sprintf("%d stations, %d tables: %d new, %d changed, %d gone",
		d.counts["stations"], d.counts["tables"], d.counts["created"], d.counts["changed"], d.counts["gone"])
	if n := d.counts["disputed"]; n > 0 {
		text += fmt.Sprintf("; the mirrors disagree about %d", n)
	}
	if n := d.counts["uncertain"]; n > 0 {
		text += fmt.Sprintf("; the station of %d measurements is not certain", n)
	}
	if n := d.counts["databases_missing"]; n > 0 {
		text += fmt.Sprintf("; %d databases are on no mirror", n)
	}
	return text
}

func (d *discovery) result() job.Result {
	result := job.Result{Message: d.message(), Counts: d.counts}
	if len(d.told) > 0 {
		result.Output = job.EncodeJSON(map[string][]string{"findings": d.told})
	}
	return result
}
