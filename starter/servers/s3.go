package servers

import (
	"context"

	"github.com/dendrascience/dendra-jobs/internal/objects"
)

// s3 looks at the S3 store and its buckets.
func (l *look) s3(ctx context.Context) []Result {
	store, result := l.openStore()
	if store == nil {
		return []Result{result}
	}
	results := []Result{result}
	for n, bucket := range l.Buckets {
		found, err := store.HasBucket(ctx, bucket)
		switch {
		case err != nil && n == 0:
			return []Result{wrong("address", err.Error(), "start the store, or correct "+objects.EnvEndpoint+" and its keys")}
		case err != nil:
			results = append(results, wrong("bucket "+bucket, err.Error(), "look at the store"))
		case !found:
			results = append(results, wrong("bucket "+bucket, "missing", setupFirst+", or name another with --bucket"))
		default:
			results = append(results, conditional(ctx, store, bucket))
		}
	}
	l.noteTime(ctx, "s3", l.Getenv(objects.EnvEndpoint))
	return results
}

// openStore makes a client, or says why there is none.
func (l *look) openStore() (*objects.Store, Result) {
	if l.Getenv(objects.EnvEndpoint) == "" {
		return nil, unset("address", objects.EnvEndpoint+" is not set: backend and load workers need it")
	}
	config, err := objects.ConfigFromEnv(l.Getenv)
	if err != nil {
		return nil, wrong("address", err.Error(), "correct the settings")
	}
	store, err := objects.New(config)
	if err != nil {
		return nil, wrong("address", err.Error(), "correct the settings")
	}
	return store, ok("address", "S3 store on "+store.Address())
}

func conditional(ctx context.Context, store *objects.Store, bucket string) Result {
	check := "bucket " + bucket
	switch obeys, err := store.Conditional(ctx, bucket); {
	case err != nil:
		return wrong(check, err.Error(), "let the keys write there")
	case !obeys:
		return wrong(check, "the store ignores If-None-Match: two writers of one archive overwrite each other",
			"use a store with conditional writes, or one archive job alone")
	}
	return ok(check, "there, with conditional writes")
}
