package client_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestMain starts what the examples need, a server and a worker. With -short they are
// skipped.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		if err := flag.Set("test.skip", "^Example"); err != nil {
			stacktest.Main().Fatal(err)
		}
		os.Exit(m.Run())
	}
	stop := startExampleWorker()
	code := m.Run()
	stop()
	os.Exit(code)
}

// connect is how the examples connect, as ExampleClient shows it.
var connect func() *client.Client

// startExampleWorker starts a worker of the type photos, and waits until it is listed.
func startExampleWorker() (stop func()) {
	t := stacktest.Main()
	st := stacktest.Start(t)
	c := client.New(st.Dial(t), st.Namespace)
	connect = func() *client.Client { return c }
	for name, value := range map[string]string{"TEMPORAL_ADDRESS": st.Temporal, "TEMPORAL_NAMESPACE": st.Namespace} {
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
	stop = workertest.Start(t, st, resizePhoto())
	workertest.WaitListed(t, c)
	return stop
}

// resizePhoto is the job type of the examples.
func resizePhoto() job.Type {
	type spec struct {
		Photo string `json:"photo"`
	}
	return job.NewType("ResizePhoto", "photos", "Resizes a photo.", func(_ context.Context, _ job.Run, s spec) (job.Result, error) {
		return job.Result{Message: "resized " + s.Photo}, nil
	})
}

// newJob is a job that resizes a photo, as ExampleClient makes it.
func newJob(photo string, trigger job.Trigger) job.Job {
	return job.Job{
		ID: job.ID("ResizePhoto", photo), Type: "ResizePhoto", Worker: "photos", Provider: job.ProviderAPI,
		Spec: json.RawMessage(`{"photo": "` + photo + `.jpg"}`), Trigger: trigger, Options: job.DefaultOptions(trigger.Mode()),
	}
}
