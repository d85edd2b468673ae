package archive

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/archive"
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
	// Bucket of the archive. Defaults to archive.
	Bucket string `json:"bucket,omitempty" jsonschema:"default=archive,minLength=3" jsonschema_description:"bucket of the archive"`
	// Prefix goes before all keys. Defaults to none.
	Prefix string `json:"prefix,omitempty" jsonschema:"example=dendra/" jsonschema_description:"text before all keys, with a slash at its end"`
	// Layout defaults to batches.
	Layout Layout `json:"layout,omitempty" jsonschema:"enum=batches,enum=documents,default=batches" jsonschema_description:"batches: compressed objects of many messages, which can be audited and replayed; documents: a JSON file for each message, as the predecessor of this system had them"`
	// FlushAge is how long a message waits for others at most. Defaults to 15 minutes.
	FlushAge job.Duration `json:"flush_age,omitzero" jsonschema:"default=PT15M" jsonschema_description:"how long a message waits for others to be archived with: at most PT45M, and shorter than run_timeout"`
	// FlushBytes is how many bytes of messages make a batch. Defaults to 64 MB.
	FlushBytes int64 `json:"flush_bytes,omitempty" jsonschema:"default=64000000,minimum=1000,maximum=256000000" jsonschema_description:"bytes of messages, not compressed, after which a batch is archived at once"`
	// FlushMessages is how many messages make a batch. Defaults to 100,000.
	FlushMessages int `json:"flush_messages,omitempty" jsonschema:"default=100000,minimum=1,maximum=500000" jsonschema_description:"messages after which a batch is archived at once"`
	// IterationDuration is how long an iteration works before it reports. Defaults to 5 minutes.
	IterationDuration job.Duration `json:"iteration_duration,omitzero" jsonschema:"default=PT5M" jsonschema_description:"how long an iteration works before it reports; what waits for flush_age then is archived first"`
	// Generation begins the archive anew when it is raised. Defaults to 0.
	Generation int `json:"generation,omitempty" jsonschema:"minimum=0,maximum=9999" jsonschema_description:"raised by one, the archive begins anew with what the stream holds: after a stream has lost its tail and given its numbers twice"`
}

const (
	maxFlushAge          = job.Duration(45 * time.Minute)
	maxIterationDuration = job.Duration(12 * time.Hour)
)

var prefixPattern = regexp.MustCompile(`^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)+$`)

func checkPrefix(prefix string) error {
	if prefix != "" && !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("prefix %q: it consists of names that each end with a slash: dendra/raw/", prefix)
	}
	return nil
}

// Validate reports everything that is wrong with the spec as a whole.
func (s *PostSpec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := checkPrefix(s.Prefix); err != nil {
		problems = append(problems, err)
	}
	switch s.Layout {
	case "", LayoutBatches, LayoutDocuments:
	default:
		add("layout %q is neither batches nor documents", string(s.Layout))
	}
	if s.FlushAge > maxFlushAge {
		add("flush_age %s is longer than %s", s.FlushAge, maxFlushAge)
	}
	if s.FlushBytes != 0 && (s.FlushBytes < 1000 || s.FlushBytes > 256_000_000) {
		add("flush_bytes %d is not from 1000 to 256000000", s.FlushBytes)
	}
	if s.FlushMessages < 0 || s.FlushMessages > 500_000 {
		add("flush_messages %d is not from 1 to 500000", s.FlushMessages)
	}
	if s.IterationDuration > maxIterationDuration {
		add("iteration_duration %s is longer than %s", s.IterationDuration, maxIterationDuration)
	}
	if s.Generation < 0 || s.Generation > 9999 {
		add("generation %d is not from 0 to 9999", s.Generation)
	}
	return errors.Join(problems...)
}

func (s PostSpec) withDefaults() PostSpec {
	if s.Bucket == "" {
		s.Bucket = archive.DefaultBucket
	}
	if s.Layout == "" {
		s.Layout = LayoutBatches
	}
	if s.FlushAge == 0 {
		s.FlushAge = job.Duration(15 * time.Minute)
	}
	if s.FlushBytes == 0 {
		s.FlushBytes = 64_000_000
	}
	if s.FlushMessages == 0 {
		s.FlushMessages = 100_000
	}
	if s.IterationDuration == 0 {
		s.IterationDuration = job.Duration(5 * time.Minute)
	}
	return s
}

// ConsumerName is the durable consumer of the raw stream that an archive job has:
// archive-<key of the job>, and its generation if that is not 0.
func ConsumerName(jobID string, generation int) string {
	_, key, _ := strings.Cut(jobID, ".")
	name := "archive-" + pipeline.SafeName(key)
	if generation > 0 {
		name += fmt.Sprintf("-%d", generation)
	}
	return name
}
