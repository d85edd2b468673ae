package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
)

// Names of the environment variables that [StreamSettingsFromEnv] reads.
const (
	EnvReplicas           = "DENDRA_NATS_REPLICAS"
	EnvCluster            = "DENDRA_NATS_CLUSTER"
	EnvTags               = "DENDRA_NATS_TAGS"
	EnvRawMaxAge          = "DENDRA_NATS_RAW_MAX_AGE"
	EnvRawMaxBytes        = "DENDRA_NATS_RAW_MAX_BYTES"
	EnvPreparedMaxAge     = "DENDRA_NATS_PREPARED_MAX_AGE"
	EnvPreparedMaxBytes   = "DENDRA_NATS_PREPARED_MAX_BYTES"
	EnvQuarantineMaxAge   = "DENDRA_NATS_QUARANTINE_MAX_AGE"
	EnvQuarantineMaxBytes = "DENDRA_NATS_QUARANTINE_MAX_BYTES"
	EnvRunLogsMaxAge      = "DENDRA_NATS_RUN_LOGS_MAX_AGE"
	EnvRunLogsMaxBytes    = "DENDRA_NATS_RUN_LOGS_MAX_BYTES"
)

// StreamSettings say how [Ensure] makes streams and buckets.
type StreamSettings struct {
	// Replicas is how many servers hold each of them: 1, 3 or 5. Defaults to 1.
	Replicas int
	// Cluster is the name of the cluster that holds them. Defaults to that of the
	// server that a client is connected to.
	Cluster string
	// Tags are what each server that holds them must have. Defaults to none.
	Tags []string
	// RawMaxAge, PreparedMaxAge and QuarantineMaxAge are how long messages are kept. Default to
	// 90, 30 and 365 days.
	RawMaxAge, PreparedMaxAge, QuarantineMaxAge time.Duration
	// RawMaxBytes, PreparedMaxBytes and QuarantineMaxBytes are how much a stream holds, in bytes,
	// before it drops its oldest messages, taken or not. Default to 4 GiB, 2 GiB and 512 MiB. The server
	// reserves them.
	RawMaxBytes, PreparedMaxBytes, QuarantineMaxBytes int64
	// RunLogsMaxAge and RunLogsMaxBytes are those of the logs of runs. Default to 7 days
	// and 1 GiB.
	RunLogsMaxAge   time.Duration
	RunLogsMaxBytes int64
}

const day = 24 * time.Hour

// StreamSettingsFromEnv reads settings through a function like os.Getenv. Its error
// names every variable that is wrong.
func StreamSettingsFromEnv(getenv func(string) string) (StreamSettings, error) {
	s := StreamSettings{Cluster: getenv(EnvCluster)}
	var problems []error
	if text := getenv(EnvReplicas); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || (n != 1 && n != 3 && n != 5) {
			problems = append(problems, fmt.Errorf("%s %q is not 1, 3 or 5", EnvReplicas, text))
		}
		s.Replicas = n
	}
	for tag := range strings.SplitSeq(getenv(EnvTags), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			s.Tags = append(s.Tags, tag)
		}
	}
	for _, age := range []struct {
		name string
		of   *time.Duration
	}{{EnvRawMaxAge, &s.RawMaxAge}, {EnvPreparedMaxAge, &s.PreparedMaxAge}, {EnvQuarantineMaxAge, &s.QuarantineMaxAge}, {EnvRunLogsMaxAge, &s.RunLogsMaxAge}} {
		text := getenv(age.name)
		if text == "" {
			continue
		}
		d, err := job.ParseDuration(text)
		if err != nil || d.Std() < duplicateWindow {
			problems = append(problems, fmt.Errorf("%s %q is not a duration of at least %s, such as P90D", age.name, text, duplicateWindow))
		}
		*age.of = d.Std()
	}
	for _, size := range []struct {
		name string
		of   *int64
	}{{EnvRawMaxBytes, &s.RawMaxBytes}, {EnvPreparedMaxBytes, &s.PreparedMaxBytes}, {EnvQuarantineMaxBytes, &s.QuarantineMaxBytes}, {EnvRunLogsMaxBytes, &s.RunLogsMaxBytes}} {
		text := getenv(size.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			problems = append(problems, fmt.Errorf("%s %q is not a number of bytes", size.name, text))
		}
		*size.of = n
	}
	return s, errors.Join(problems...)
}

func (s StreamSettings) placement() *jetstream.Placement {
	if s.Cluster == "" && len(s.Tags) == 0 {
		return nil
	}
	return &jetstream.Placement{Cluster: s.Cluster, Tags: s.Tags}
}
