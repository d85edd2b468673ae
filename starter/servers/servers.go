// Package servers calls the servers that starter speaks to itself. It looks at those that people
// bring, and makes what this system needs there: starter doctor and starter setup. It dials a
// Job API, and sends files to the S3 store that one names.
package servers

import (
	"context"
	"slices"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// EnvNATS names the environment variable with the URL of the NATS server.
const EnvNATS = pipeline.EnvURL

// DefaultBucket is the bucket of the archive.
const DefaultBucket = archive.DefaultBucket

// Site is where the servers are.
type Site struct {
	Temporal temporalclient.Settings
	// Getenv reads the settings of all other servers, as those of the workers.
	Getenv func(string) string
	// NATS is the URL of the NATS server. Defaults to [pipeline.URLFromEnv].
	NATS string
	// Buckets are those of the S3 store that are needed.
	Buckets []string
	// Policies are policies of buckets, as the store takes them, by the bucket.
	Policies map[string]string
	// Jobs are jobs whose InfluxDB servers are looked at, besides those in Temporal.
	Jobs []job.Job
	// Only names the parts to look at. Defaults to all.
	Only []string
}

// State is how a check ended.
type State string

// The states.
const (
	StateOK    State = "ok"
	StateWrong State = "wrong"
	StateUnset State = "unset" // not configured, or not known without something else
	StateMade  State = "made"  // by setup
	StateThere State = "there" // before setup
)

// Result is one line of a report.
type Result struct {
	// Part is one of [Parts].
	Part  string `json:"part"`
	Check string `json:"check"`
	State State  `json:"state"`
	Found string `json:"found"`
	// Cure says what to do, "" if there is nothing.
	Cure string `json:"cure,omitempty"`
}

// Parts are the names of what is looked at, in this order.
func Parts() []string {
	names := make([]string, len(checks))
	for n, c := range checks {
		names[n] = c.part
	}
	return names
}

// checks are all parts. The first ones find what the later ones look at.
var checks = []struct {
	part  string
	stage int
	run   func(*look, context.Context) []Result
}{
	{"temporal", 0, (*look).temporal},
	{"workers", 1, (*look).workers},
	{"nats", 1, (*look).nats},
	{"s3", 1, (*look).s3},
	{"influx", 1, (*look).influx},
	{"platform", 1, (*look).platform},
	{"release2", 1, (*look).release2},
	{"clocks", 2, (*look).clocks},
}

// stages is how many stages the checks have.
const stages = 3

// partTimeout bounds the check of one part.
const partTimeout = 20 * time.Second

// Check looks at all servers. It changes nothing but a small object in each bucket,
// which it removes.
func Check(ctx context.Context, site Site) []Result {
	l := &look{Site: site}
	defer l.close()
	found := make([][]Result, len(checks))
	for stage := range stages {
		var group sync.WaitGroup
		for n, c := range checks {
			if c.stage != stage || !l.wants(c.part) {
				continue
			}
			group.Go(func() {
				within, cancel := context.WithTimeout(ctx, partTimeout)
				defer cancel()
				found[n] = c.run(l, within)
				for i := range found[n] {
					found[n][i].Part = c.part
				}
			})
		}
		group.Wait()
	}
	return slices.Concat(found...)
}

// look is one look at a site.
type look struct {
	Site
	client    sdk.Client // nil if there is none
	namespace temporalclient.Namespace
	keys      []string // ids of payload keys

	mu    sync.Mutex
	times []clock
}

func (l *look) wants(part string) bool { return len(l.Only) == 0 || slices.Contains(l.Only, part) }

func (l *look) close() {
	if l.client != nil {
		l.client.Close()
	}
}

// connectNATS makes a client of the NATS server. The caller closes it.
func (l *look) connectNATS(ctx context.Context) (*pipeline.Client, error) {
	url := l.NATS
	if url == "" {
		url = pipeline.URLFromEnv(l.Getenv)
	}
	return pipeline.Connect(ctx, url, pipeline.FromEnv(l.Getenv))
}

func ok(check, found string) Result { return Result{Check: check, State: StateOK, Found: found} }

func wrong(check, found, what string) Result {
	return Result{Check: check, State: StateWrong, Found: found, Cure: what}
}

func unset(check, found string) Result {
	return Result{Check: check, State: StateUnset, Found: found}
}
