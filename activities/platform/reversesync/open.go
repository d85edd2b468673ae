package reversesync

import (
	"context"
	"errors"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Open makes a syncer from the environment, read through a function like os.Getenv. Its
// error lists every variable that is missing or wrong.
func Open(ctx context.Context, getenv func(string) string, client *pipeline.Client) (*Syncer, error) {
	from, wrong := platform.ConfigFromEnv(getenv)
	to, alsoWrong := release2.ConfigFromEnv(getenv)
	if err := errors.Join(wrong, alsoWrong); err != nil {
		return nil, job.Fail(errclass.ReverseSyncSettings, "reverse sync: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	api, err := platform.New(from)
	if err != nil {
		return nil, err
	}
	documents, err := release2.New(to)
	if err != nil {
		return nil, err
	}
	return New(ctx, api, documents, client)
}
