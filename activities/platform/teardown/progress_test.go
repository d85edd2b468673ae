package teardown_test

import (
	"encoding/json"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/client"
)

// zero is no grace period.
var zero = durationpb.New(0)

// at reports whether a run is at a stage, or beyond it, and has removed so many things there.
func at(detail *client.RunDetail, stage string, least int64) bool {
	var report teardown.Report
	if json.Unmarshal(detail.Cursor, &report) != nil {
		return false
	}
	for _, s := range report.Stages {
		n := int64(0)
		for _, things := range s.Things {
			n += things.Count
		}
		if s.Name == stage && (s.Done || n >= least) {
			return true
		}
	}
	return false
}
