package archive

import (
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// ReplaySpec is the spec of ReplayArchive.
type ReplaySpec struct {
	Organization string `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization whose raw messages are published again"`
	Source       string `json:"source" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"csi" help:"source of the messages: csi, hobolink"`
	// From and To bound when the raw stream took the messages.
	From          time.Time          `json:"from" example:"2026-03-01T00:00:00Z" help:"time from which on the platform had received the messages; it is not the time of their data"`
	To            time.Time          `json:"to" example:"2026-03-02T00:00:00Z" help:"time before which it had received them"`
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" default:"bulk" help:"flow that the messages are published to: its prepare and load jobs have to run"`
	ArchivedMode  pipeline.Operation `json:"archived_operation_mode,omitempty" enum:"live,test,bulk" default:"live" help:"flow that the messages were archived from"`
	Documents     string             `json:"documents,omitempty" pattern:"^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)+$" example:"ucnrs/csi/" help:"folder with a JSON file for each message, published instead of batches. from and to are compared with the hour in their paths"`
	Bucket        string             `json:"bucket,omitempty" minLength:"3" default:"archive" help:"bucket of the archive"`
	Prefix        string             `json:"prefix,omitempty" pattern:"^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)+$" help:"text before all keys of the archive"`
}

// Validate reports a time frame that holds nothing.
func (s *ReplaySpec) Validate() error {
	if !s.From.Before(s.To) {
		return fmt.Errorf("from %s is not before to %s", s.From.Format(time.RFC3339), s.To.Format(time.RFC3339))
	}
	return nil
}
