package workers

import (
	"context"
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// sendCheckpoint is a grpc.UnaryClientInterceptor. It sends the last checkpoint of an
// attempt that failed as heartbeat details of the failure, in the same call: the next
// attempt goes on from there, whatever became of the heartbeats. The SDK sends none.
func sendCheckpoint(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if failed, ok := request.(*workflowservice.RespondActivityTaskFailedRequest); ok {
		failed.LastHeartbeatDetails = checkpointOf(failed.GetFailure())
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// checkpointOf gives the heartbeat details of a failure that has the output of a run
// with it, nil of other failures.
func checkpointOf(failure *failurepb.Failure) *commonpb.Payloads {
	details := failure.GetApplicationFailureInfo().GetDetails()
	var output contract.ActivityOutput
	data := converter.GetDefaultDataConverter()
	if len(details.GetPayloads()) != 1 || data.FromPayloads(details, &output) != nil || output.Worker == "" {
		return nil
	}
	checkpoint, err := data.ToPayloads(heartbeat(output.Progress, output.Result.Cursor, output.Worker, output.EachAttempt))
	if err != nil {
		return nil // As if no heartbeat came in time.
	}
	return checkpoint
}

// heartbeat is what a heartbeat carries.
func heartbeat(progress job.Progress, cursor json.RawMessage, worker string, attempts []contract.Attempt) contract.Heartbeat {
	report := contract.Heartbeat{Progress: progress, Cursor: cursor, Worker: worker, EachAttempt: attempts}
	if progress != (job.Progress{}) {
		report.Text = progress.String()
	}
	return report
}
