package page

import (
	"context"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Sample notes how loads were.
func (p *Page) Sample(o *jobsv1.Overview, at time.Time) { p.samples.take(o, at) }

// ToGo says how long it takes until so many items of a queue have run.
var ToGo = toGo

// NewSpans and NewDurations are the pictures of a run.
var (
	NewSpans     = newSpans
	NewDurations = newDurations
)

// DoneText is the progress of a run whose total is not known.
var DoneText = doneText

// StartsFrom are the starts that are not held back until a time, and that time if others are.
var StartsFrom = startsFrom

// StampIn is a time in the zone of a job.
var StampIn = stampIn

// LoadSamples and SaveSamples are what Run does when it begins and ends.
func (p *Page) LoadSamples(ctx context.Context) error { return p.samples.load(ctx, p.Samples) }
func (p *Page) SaveSamples(ctx context.Context) error { return p.samples.save(ctx, p.Samples) }

// MaxSeries bounds the series of samples.
const MaxSeries = maxSeries
