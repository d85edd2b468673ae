package teardown

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// databases removes what the mirrors have of the organization's stations: the measurements
// that name its stations and those of no other organization, or a whole database that a
// load made and that has nothing else. Any station can name any database.
func (t *teardown) databases(ctx context.Context) error {
	stations, err := t.allStations(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(stations, t.owns) {
		return nil
	}
	if len(t.Places.Locations) == 0 {
		t.stage.Keep("databases stay: " + places.Env + " of the worker names no location")
		return nil
	}
	for i := range t.Places.Locations {
		if err := t.settle(ctx, t.Places.Locations[i].Location); err != nil {
			return err
		}
	}
	if err := t.unblocked(); err != nil {
		return err
	}
	for i := range t.Places.Locations {
		for _, m := range t.Places.Locations[i].All() {
			if err := t.mirror(ctx, t.Places.Locations[i].Location, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *teardown) owns(s *platformv1.Station) bool {
	return s.GetOrganizationId() == t.organization.GetId()
}

func (t *teardown) isOther(s *platformv1.Station) bool { return !t.owns(s) }

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
			t.stage.Block("consumer %s has messages that are not written yet: its job has to go on", busy)
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
func (t *teardown) mirror(ctx context.Context, name string, m influx.Mirror) error {
	config, err := m.Reach(t)
	if err != nil {
		return err
	}
	explain := func(err error) error { return m.Explain(name, err) }
	there, err := influx.Databases(ctx, config)
	if err != nil {
		return explain(err)
	}
	var named []string
	for _, s := range t.stations {
		if t.owns(s) {
			named = append(named, cmp.Or(m.Database, s.GetDatabase(), name))
		}
	}
	slices.Sort(named)
	for _, database := range slices.Compact(named) {
		if !slices.Contains(there, database) {
			continue
		}
		if err := t.database(ctx, config, database, m.Name+"/"+database); err != nil {
			return explain(err)
		}
	}
	return nil
}

// database removes what is the organization's in a database, or all of it.
func (t *teardown) database(ctx context.Context, config influx.Config, database, label string) error {
	names, err := influx.MeasurementNames(ctx, config, database)
	if err != nil {
		return err
	}
	owners := influx.OwnersOf(database, t.Places.Sharing(database, t.stations))
	var certain, shared []string
	foreign := "" // a measurement that is not certain to be the organization's
	for _, name := range names {
		of, _ := owners.Named(name)
		own := slices.ContainsFunc(of, t.owns)
		if own && !slices.ContainsFunc(of, t.isOther) {
			certain = append(certain, name)
			continue
		}
		if foreign = cmp.Or(foreign, name); own {
			shared = append(shared, name)
		}
	}
	reason, err := t.whyKept(ctx, config, database, foreign)
	if err != nil {
		return err
	}
	if reason == "" {
		return t.remove(ctx, "databases", label, 1, func(ctx context.Context) error { return influx.DropDatabase(ctx, config, database) })
	}
	t.stage.Keep("database %s stays: %s", label, reason)
	for _, name := range shared {
		t.stage.Keep("measurement %s/%s stays: it names a station of another organization too", label, name)
	}
	for _, name := range certain {
		err := t.remove(ctx, "measurements", label+"/"+name, 1, func(ctx context.Context) error { return influx.DropMeasurement(ctx, config, database, name) })
		if err != nil {
			return err
		}
	}
	return nil
}

// whyKept says why a database stays, and nothing if it goes. Foreign is a measurement of it
// that is not certain to be the organization's, if there is one.
func (t *teardown) whyKept(ctx context.Context, config influx.Config, database, foreign string) (string, error) {
	for i := range t.Places.Locations {
		l := &t.Places.Locations[i]
		if l.Location == database || slices.ContainsFunc(l.All(), func(m influx.Mirror) bool { return m.Database == database }) {
			return "it is the database of location " + l.Location, nil
		}
	}
	loads, err := t.Pipeline.Loads(ctx)
	if err != nil && !errors.Is(err, pipeline.ErrNoStream) {
		return "", err
	}
	if slices.ContainsFunc(loads, func(l pipeline.Load) bool { return l.Location == database }) {
		return "it is the database of location " + database, nil
	}
	for _, s := range t.stations {
		if !t.owns(s) && s.GetDatabase() == database {
			return "station " + s.GetSlug() + " of another organization names it", nil
		}
	}
	configs, err := t.allConfigs(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range configs {
		if c.GetOrganizationId() == t.organization.GetId() {
			continue
		}
		for _, value := range c.GetValues() {
			if value.GetStringValue() == database || slices.Contains(value.GetStringsValue().GetValues(), database) {
				return "config " + c.GetId() + " of another organization names it", nil
			}
		}
	}
	if foreign != "" {
		return "its measurement " + foreign + " is not that of a station of the organization alone", nil
	}
	made, err := influx.MadeByLoad(ctx, config, database)
	if err == nil && !made {
		return "no load job made it", nil
	}
	return "", err
}
