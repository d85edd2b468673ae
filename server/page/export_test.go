package page

import (
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Sample notes how loads were.
func (p *Page) Sample(o *jobsv1.Overview, at time.Time) { p.samples.take(o, at) }

// Attribute is a value of a line of a log.
var Attribute = attribute

// ToGo says how long it takes until so many items of a queue have run.
var ToGo = toGo

// DoneText is the progress of a run whose total is not known.
var DoneText = doneText
