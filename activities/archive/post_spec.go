package archive

import (
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// Layout says what the archive consists of.
type Layout string

// The layouts.
const (
	LayoutBatches   Layout = "batches"   // many messages in an object, with a proof that none is missing
	LayoutDocuments Layout = "documents" // an object for each message, under a path of its own
)

// PostSpec is the spec of PostToArchive.
type PostSpec struct {
	Bucket string `json:"bucket,omitempty" minLength:"3" default:"archive" help:"bucket of the archive"`
	Prefix string `json:"prefix,omitempty" pattern:"^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)+$" example:"dendra/" help:"text before all keys, with a slash at its end"`
	Layout Layout `json:"layout,omitempty" enum:"batches,documents" default:"batches" help:"batches: compressed objects of many messages, for audit and replay; documents: a JSON file for each message"`
	// FlushAge, FlushBytes and FlushMessages end a batch, whichever is reached first.
	FlushAge          job.Duration `json:"flush_age,omitzero" maximum:"PT45M" default:"PT15M" help:"how long a message waits for others to be archived with: shorter than run_timeout"`
	FlushBytes        int64        `json:"flush_bytes,omitempty" minimum:"1000" maximum:"256000000" default:"64000000" help:"bytes of messages, not compressed, after which a batch is archived at once"`
	FlushMessages     int          `json:"flush_messages,omitempty" minimum:"1" maximum:"500000" default:"100000" help:"messages after which a batch is archived at once"`
	IterationDuration job.Duration `json:"iteration_duration,omitzero" maximum:"PT12H" default:"PT5M" help:"how long an iteration works before it reports; what waits for flush_age then is archived first"`
	Generation        int          `json:"generation,omitempty" minimum:"0" maximum:"9999" help:"raised by one, the archive begins anew with what the stream holds: after a stream has lost its tail and given its numbers twice"`
}

// ConsumerName is the durable consumer of the raw stream that an archive job has:
// archive-<key of the job>, and its generation if that is not 0.
func ConsumerName(jobID string, generation int) string {
	_, key, _ := strings.Cut(jobID, ".")
	name := ConsumerPrefix + pipeline.SafeName(key)
	if generation > 0 {
		name += fmt.Sprintf("-%d", generation)
	}
	return name
}
