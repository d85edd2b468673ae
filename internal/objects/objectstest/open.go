package objectstest

import (
	"testing"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// Config says how to reach the store of a stack.
func Config(s3 stack.S3) objects.Config {
	return objects.Config{AccessKey: s3.AccessKey, Endpoint: s3.Endpoint, Region: s3.Region, SecretKey: s3.SecretKey}
}

// Open makes a client of the store of a stack.
func Open(t testing.TB, s3 stack.S3) *objects.Store {
	t.Helper()
	store, err := objects.New(Config(s3))
	if err != nil {
		t.Fatal(err)
	}
	return store
}
