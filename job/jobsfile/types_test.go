package jobsfile_test

import (
	"context"
	"errors"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

type loadSpec struct {
	Location    string        `json:"location"`
	BatchPoints int           `json:"batch_points,omitempty" minimum:"1" maximum:"10000"`
	InfluxURL   string        `json:"influx_url,omitempty"`
	Token       job.SecretRef `json:"token,omitempty"`
	Every       job.Duration  `json:"every,omitempty"`
}

type extractSpec struct {
	From    time.Time `json:"from"`
	Until   time.Time `json:"until,omitzero"`
	Sensors []string  `json:"sensors,omitempty"`
	Factor  float64   `json:"factor,omitempty"`
}

func (s *extractSpec) Validate() error {
	if !s.Until.IsZero() && s.Until.Before(s.From) {
		return errors.New("until is before from")
	}
	return nil
}

func nothing[S any](context.Context, job.Run, S) (job.Result, error) { return job.Result{}, nil }

// testTypes are job types for every case: with rules that span fields, with
// few modes, and one whose spec has no Go type here.
func testTypes() []job.Type {
	return []job.Type{
		job.NewType("LiveLoadInfluxV1", job.WorkerLoad, "Loads points.", nothing[loadSpec], job.ModeContinuous, job.ModeOneShot),
		job.NewType("ExtractHoboTimeFrame", job.WorkerExtract, "Extracts.", nothing[extractSpec]),
		{Name: "PostToArchive", Worker: "archive"},
	}
}
