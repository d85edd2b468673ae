package api

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// deploymentService implements dendra.jobs.v1.DeploymentService.
type deploymentService struct{ *Server }

// GetDeployment implements the service.
func (s *deploymentService) GetDeployment(ctx context.Context, r *jobsv1.GetDeploymentRequest) (*jobsv1.GetDeploymentResponse, error) {
	d, err := s.Client.Deployments.Get(ctx, r.GetDeployment())
	if err != nil {
		return nil, err
	}
	return &jobsv1.GetDeploymentResponse{Deployment: deploymentMessage(d)}, nil
}

// RampBuild implements the service.
func (s *deploymentService) RampBuild(ctx context.Context, r *jobsv1.RampBuildRequest) (*jobsv1.RampBuildResponse, error) {
	d, err := s.Client.Deployments.Ramp(ctx, r.GetDeployment(), r.GetBuildId(), r.GetPercentage())
	if err != nil {
		return nil, err
	}
	return &jobsv1.RampBuildResponse{Deployment: deploymentMessage(d)}, nil
}

// PromoteBuild implements the service.
func (s *deploymentService) PromoteBuild(ctx context.Context, r *jobsv1.PromoteBuildRequest) (*jobsv1.PromoteBuildResponse, error) {
	d, err := s.Client.Deployments.Promote(ctx, r.GetDeployment(), r.GetBuildId(), r.GetIgnoreMissingWorkers())
	if err != nil {
		return nil, err
	}
	return &jobsv1.PromoteBuildResponse{Deployment: deploymentMessage(d)}, nil
}

// RollbackDeployment implements the service.
func (s *deploymentService) RollbackDeployment(ctx context.Context, r *jobsv1.RollbackDeploymentRequest) (*jobsv1.RollbackDeploymentResponse, error) {
	d, err := s.Client.Deployments.Rollback(ctx, r.GetDeployment())
	if err != nil {
		return nil, err
	}
	return &jobsv1.RollbackDeploymentResponse{Deployment: deploymentMessage(d)}, nil
}

// MoveRuns implements the service.
func (s *deploymentService) MoveRuns(ctx context.Context, r *jobsv1.MoveRunsRequest) (*jobsv1.MoveRunsResponse, error) {
	moved, err := s.Client.Deployments.Move(ctx, r.GetDeployment(), r.GetFromBuildId(), r.GetToBuildId())
	return &jobsv1.MoveRunsResponse{MoveCount: int32(moved)}, err
}

// PruneBuilds implements the service.
func (s *deploymentService) PruneBuilds(ctx context.Context, r *jobsv1.PruneBuildsRequest) (*jobsv1.PruneBuildsResponse, error) {
	pruned, err := s.Client.Deployments.Prune(ctx, r.GetDeployment())
	if err != nil {
		return nil, err
	}
	d, err := s.Client.Deployments.Get(ctx, r.GetDeployment())
	if err != nil {
		return nil, err
	}
	return &jobsv1.PruneBuildsResponse{BuildIds: pruned, Deployment: deploymentMessage(d)}, nil
}

var buildStatuses = map[enumspb.WorkerDeploymentVersionStatus]jobsv1.BuildStatus{
	enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CREATED:  jobsv1.BuildStatus_BUILD_STATUS_INACTIVE,
	enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE: jobsv1.BuildStatus_BUILD_STATUS_INACTIVE,
	enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT:  jobsv1.BuildStatus_BUILD_STATUS_CURRENT,
	enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING:  jobsv1.BuildStatus_BUILD_STATUS_RAMPING,
	enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING: jobsv1.BuildStatus_BUILD_STATUS_DRAINING,
	enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED:  jobsv1.BuildStatus_BUILD_STATUS_DRAINED,
}

func deploymentMessage(d *client.Deployment) *jobsv1.Deployment {
	m := &jobsv1.Deployment{Name: d.Name}
	for _, f := range d.Findings() {
		m.Findings = append(m.Findings, f.Found+": "+f.Do)
	}
	for _, b := range d.Builds {
		m.Builds = append(m.Builds, &jobsv1.Build{
			Id: b.ID, Status: buildStatuses[b.Status], Percentage: b.Percentage, CreateTime: timeOf(b.Created), LastCurrentTime: timeOf(b.LastCurrent),
			Workers: int32(b.Workers), Runs: b.Runs, LongRunning: b.LongRunning, Held: b.Holds(time.Now()),
		})
	}
	return m
}
