package archive

import (
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/archive"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// ReplaySpec is the spec of ReplayArchive.
type ReplaySpec struct {
	// Organization and Source whose raw messages are published again.
	Organization string `json:"organization" jsonschema:"example=demo" jsonschema_description:"slug of the organization whose raw messages are published again"`
	Source       string `json:"source" jsonschema:"example=csi" jsonschema_description:"source of the messages: csi, hobolink"`
	// From and To bound when the raw stream took them.
	From time.Time `json:"from" jsonschema:"example=2026-03-01T00:00:00Z" jsonschema_description:"time from which on the platform had received the messages; it is not the time of their data"`
	To   time.Time `json:"to" jsonschema:"example=2026-03-02T00:00:00Z" jsonschema_description:"time before which it had received them"`
	// OperationMode is the flow that they are published to. Defaults to bulk.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"enum=live,enum=test,enum=bulk,default=bulk" jsonschema_description:"flow that the messages are published to: its prepare and load jobs have to run"`
	// ArchivedMode is the flow that they were archived from. Defaults to live.
	ArchivedMode pipeline.Operation `json:"archived_operation_mode,omitempty" jsonschema:"enum=live,enum=test,enum=bulk,default=live" jsonschema_description:"flow that the messages were archived from"`
	// Bucket and Prefix are those of the archive.
	Bucket string `json:"bucket,omitempty" jsonschema:"default=archive,minLength=3" jsonschema_description:"bucket of the archive"`
	Prefix string `json:"prefix,omitempty" jsonschema_description:"text before all keys of the archive"`
}

// Validate reports everything that is wrong with the spec as a whole.
func (s *ReplaySpec) Validate() error {
	var problems []error
	check := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	check(pipeline.CheckToken("organization", s.Organization))
	check(pipeline.CheckToken("source", s.Source))
	check(checkPrefix(s.Prefix))
	for _, mode := range []pipeline.Operation{s.OperationMode, s.ArchivedMode} {
		if mode != "" {
			check(mode.Check())
		}
	}
	switch {
	case s.From.IsZero() || s.To.IsZero():
		check(errors.New("from and to are given both"))
	case !s.From.Before(s.To):
		check(fmt.Errorf("from %s is not before to %s", s.From.Format(time.RFC3339), s.To.Format(time.RFC3339)))
	}
	return errors.Join(problems...)
}

func (s ReplaySpec) withDefaults() ReplaySpec {
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationBulk
	}
	if s.ArchivedMode == "" {
		s.ArchivedMode = pipeline.OperationLive
	}
	if s.Bucket == "" {
		s.Bucket = archive.DefaultBucket
	}
	return s
}
