package teardown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/location"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Classes of errors of InfluxDB, as elsewhere.
const (
	classInfluxUnreachable = "InfluxUnreachable"
	classInfluxConfig      = "InfluxConfig"
)

// databases removes what the mirrors have of the organization's stations: a whole database
// if only its stations name it, otherwise the measurements that name its stations and
// those of no other organization.
func (t *teardown) databases(ctx context.Context) error {
	stations, err := t.allStations(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(stations, t.owns) {
		return nil
	}
	if len(t.spec.Locations) == 0 {
		t.stage.keep("databases stay: the spec names no location")
		return nil
	}
	for i := range t.spec.Locations {
		if err := t.settle(ctx, t.spec.Locations[i].Location); err != nil {
			return err
		}
	}
	if err := t.unblocked(); err != nil {
		return err
	}
	for i := range t.spec.Locations {
		for _, m := range t.spec.Locations[i].All() {
			if err := t.mirror(ctx, t.spec.Locations[i].Location, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *teardown) owns(s *platformv1.Station) bool {
	return s.GetOrganizationId() == t.organization.GetId()
}

const (
	// settleTime is how long an attempt waits for loaders, and settlePoll how often it looks.
	settleTime = 20 * time.Second
	settlePoll = 200 * time.Millisecond
)

// settle waits until the loaders of a location have written what they had taken before the
// prepared messages of the organization were removed.
func (t *teardown) settle(ctx context.Context, name string) error {
	if t.spec.DryRun {
		return nil
	}
	at, err := t.Pipeline.StreamState(ctx, pipeline.StreamPrepared)
	if errors.Is(err, pipeline.ErrNoStream) {
		return nil
	}
	if err != nil {
		return err
	}
	deadline := time.Now().Add(settleTime)
	for {
		states, err := t.Pipeline.ConsumerStates(ctx, pipeline.StreamPrepared)
		if err != nil {
			return err
		}
		busy := ""
		for _, s := range states {
			if _, of, ok := pipeline.ParsePrepSubject(s.Subject); ok && of == name && s.Unanswered > 0 && s.AckFloor < at.Last {
				busy = s.Name
			}
		}
		if busy == "" {
			return nil
		}
		if time.Now().After(deadline) {
			t.stage.block("consumer %s has messages that are not written yet: its job has to go on", busy)
			return nil
		}
		select {
		case <-time.After(settlePoll):
		case <-t.Stopping():
			return job.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mirror removes what a server has.
func (t *teardown) mirror(ctx context.Context, name string, m location.Mirror) error {
	config := influx.Config{URL: m.InfluxURL, Username: m.Username}
	if m.Password != "" {
		password, err := t.Secret(m.Password)
		if err != nil {
			return err
		}
		config.Password = password
	}
	explain := func(err error) error {
		failed := (*influx.Error)(nil)
		if !errors.As(err, &failed) {
			return err
		}
		class := classInfluxUnreachable
		if failed.Kind == influx.KindConfig {
			class = classInfluxConfig
		}
		return job.Retryable(class, 0, "mirror %s of location %s: %w", m.Name, name, err)
	}
	there, err := influx.Databases(ctx, config)
	if err != nil {
		return explain(err)
	}
	byDatabase := map[string][]*platformv1.Station{}
	for _, s := range t.stations {
		database := cmp.Or(m.Database, s.GetDatabase(), name)
		byDatabase[database] = append(byDatabase[database], s)
	}
	for _, database := range slices.Sorted(maps.Keys(byDatabase)) {
		if !slices.Contains(there, database) || !slices.ContainsFunc(byDatabase[database], t.owns) {
			continue
		}
		label := m.Name + "/" + database
		shared, err := t.isShared(ctx, database, byDatabase[database])
		if err != nil {
			return err
		}
		if !shared {
			err := t.remove(ctx, "databases", label, 1, func(ctx context.Context) error { return influx.DropDatabase(ctx, config, database) })
			if err != nil {
				return explain(err)
			}
			continue
		}
		if err := t.measurements(ctx, config, database, label, byDatabase[database]); err != nil {
			return explain(err)
		}
	}
	return nil
}

// isShared says whether a database may hold data of others than the organization: a
// station or a config of another one names it, or it is that of a location.
func (t *teardown) isShared(ctx context.Context, database string, stations []*platformv1.Station) (bool, error) {
	if slices.ContainsFunc(stations, func(s *platformv1.Station) bool { return !t.owns(s) || s.GetDatabase() != database }) {
		return true, nil
	}
	for _, s := range t.stations { // Another mirror may name it for them.
		if !t.owns(s) && s.GetDatabase() == database {
			return true, nil
		}
	}
	for i := range t.spec.Locations {
		l := &t.spec.Locations[i]
		if l.Location == database || l.Database == database || slices.ContainsFunc(l.Mirrors, func(m location.Mirror) bool { return m.Database == database }) {
			return true, nil
		}
	}
	loads, err := t.Pipeline.Loads(ctx)
	if err != nil && !errors.Is(err, pipeline.ErrNoStream) {
		return false, err
	}
	if slices.ContainsFunc(loads, func(l pipeline.Load) bool { return l.Location == database }) {
		return true, nil
	}
	configs, err := t.allConfigs(ctx)
	for _, c := range configs {
		if c.GetOrganizationId() == t.organization.GetId() {
			continue
		}
		for _, value := range c.GetValues() {
			if value.GetStringValue() == database || slices.Contains(value.GetStringsValue().GetValues(), database) {
				return true, nil
			}
		}
	}
	return false, err
}

// measurements removes those of a shared database that are the organization's alone.
func (t *teardown) measurements(ctx context.Context, config influx.Config, database, label string, stations []*platformv1.Station) error {
	names, err := influx.MeasurementNames(ctx, config, database)
	if err != nil {
		return err
	}
	owners := location.OwnersOf(database, stations)
	for _, name := range names {
		of, _ := owners.Named(name)
		if !slices.ContainsFunc(of, t.owns) {
			continue
		}
		full := fmt.Sprintf("%s/%s", label, name)
		if slices.ContainsFunc(of, func(s *platformv1.Station) bool { return !t.owns(s) }) {
			t.stage.keep("measurement %s stays: a station of another organization has its name too", full)
			continue
		}
		err := t.remove(ctx, "measurements", full, 1, func(ctx context.Context) error { return influx.DropMeasurement(ctx, config, database, name) })
		if err != nil {
			return err
		}
	}
	return nil
}
