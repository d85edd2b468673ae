package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// A program calls a server of the Job API. It needs the generated code alone; NewClients
// only gathers its clients.
func ExampleNewClients() {
	clients := api.NewClients(connecthttp.NewTransport(http.DefaultClient, "http://127.0.0.1:8080"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := stepsEveryTenMinutes(ctx, clients); err != nil {
		reason, text := api.InfoOf(err)
		fmt.Println(connect.CodeOf(err), reason, text)
	}
}

func stepsEveryTenMinutes(ctx context.Context, clients *api.Clients) error {
	spec, err := structpb.NewStruct(map[string]any{"steps": 2})
	if err != nil {
		return err
	}
	// A repeat with the same request id makes no second job.
	_, err = clients.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{
		Job: &jobsv1.Job{
			Id: "take_steps.example", Spec: spec,
			Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(10 * time.Minute)}},
		},
		RequestId: "0b9f4a52-6f0f-4f7a-9a55-7a8c1d2e3f41",
	})
	if err != nil {
		return err
	}
	started, err := clients.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: "take_steps.example"})
	if err != nil {
		return err
	}
	watched, err := clients.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: started.GetRunName()})
	if err != nil {
		return err
	}
	defer func() { _ = watched.Close() }()
	for {
		change, err := watched.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(change.GetRun().GetStatus(), change.GetRun().GetMessage())
	}
}
