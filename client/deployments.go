package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
)

// DeploymentClient says which builds of versioned workers take runs.
type DeploymentClient struct{ *conn }

// Deployment is a Worker Deployment with its builds, which Temporal calls its versions.
type Deployment struct {
	Name string
	// Builds are those that Temporal knows, the latest first.
	Builds []Build
	// token changes with each change of the routing.
	token []byte
	// propagated says that all task queues know of the latest change.
	propagated bool
}

// Build is one build of the workers of a deployment.
type Build struct {
	ID     string
	Status enumspb.WorkerDeploymentVersionStatus
	// Percentage is the part of new runs that a ramping build takes.
	Percentage float32
	// Created is when its first worker came. LastCurrent is when it last became the current
	// build, zero if it never was. Left is when it stopped taking new runs.
	Created, LastCurrent, Left time.Time
	// Workers counts the live processes of the build.
	Workers int
	// Runs counts the open runs that are pinned to the build, LongRunning the loops, queues and
	// records of applied jobs that are.
	Runs, LongRunning int64
}

// settled is how long after a build has stopped taking runs lists surely have all that it holds.
const settled = time.Minute

// Holds says in a sentence without its subject why the workers of the build have to stay, ""
// if they may be stopped.
func (b Build) Holds(now time.Time) string {
	switch b.Status {
	case enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT:
		return "it is the current build"
	case enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING:
		return "it takes a part of the new runs"
	}
	switch {
	case b.Runs+b.LongRunning > 0:
		return "it holds " + b.heldText()
	case now.Sub(b.Left) < settled:
		return "it took runs until a moment ago: look again in a minute"
	}
	return ""
}

func (b Build) heldText() string {
	var parts []string
	if b.Runs > 0 {
		parts = append(parts, fmt.Sprintf("%d runs", b.Runs))
	}
	if b.LongRunning > 0 {
		parts = append(parts, fmt.Sprintf("%d loops, queues and records", b.LongRunning))
	}
	return strings.Join(parts, " and ")
}

// MostBuilds is how many builds a Temporal server takes of a deployment by default:
// matching.maxVersionsInDeployment.
const MostBuilds = 100

// Find finds a build, nil if there is none.
func (d *Deployment) Find(id string) *Build {
	n := slices.IndexFunc(d.Builds, func(b Build) bool { return b.ID == id })
	if n < 0 {
		return nil
	}
	return &d.Builds[n]
}

// Finding is something that people have to do about a deployment.
type Finding struct{ Found, Do string }

// Findings are what people have to do about the deployment.
func (d *Deployment) Findings() []Finding {
	var found []Finding
	for _, b := range d.Builds {
		takes := b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT || b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING
		switch {
		case b.Workers > 0:
		case takes:
			found = append(found, Finding{"build " + b.ID + " takes new runs and has no live worker", "start one, or promote another build"})
		case b.Runs+b.LongRunning > 0:
			found = append(found, Finding{
				"build " + b.ID + " holds " + b.heldText() + " and has no live worker", "start one, or move what it holds: starter deploy move",
			})
		}
	}
	if len(d.Builds) > MostBuilds*4/5 {
		found = append(found, Finding{
			fmt.Sprintf("deployment %s has %d builds, and Temporal takes %d by default", d.Name, len(d.Builds), MostBuilds), "remove some: starter deploy prune",
		})
	}
	return found
}

func (d *Deployment) withStatus(status enumspb.WorkerDeploymentVersionStatus) *Build {
	n := slices.IndexFunc(d.Builds, func(b Build) bool { return b.Status == status })
	if n < 0 {
		return nil
	}
	return &d.Builds[n]
}

// before is the build that was the current one last before the present one, nil if none was.
func (d *Deployment) before() *Build {
	var last *Build
	for n := range d.Builds {
		b := &d.Builds[n]
		if b.Status != enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT && !b.LastCurrent.IsZero() &&
			(last == nil || b.LastCurrent.After(last.LastCurrent)) {
			last = b
		}
	}
	return last
}

// Get reads a deployment, with what each build holds. The error is [ErrNotFound] if no
// versioned worker of this name has ever come.
func (c *DeploymentClient) Get(ctx context.Context, name string) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	services, err := (&WorkerClient{c.conn}).Services(ctx, time.Time{})
	if err := errors.Join(err, services.Unreadable); err != nil {
		return nil, err
	}
	for n := range d.Builds {
		b := &d.Builds[n]
		for _, s := range services.Live {
			if s.Deployment == name && s.BuildID == b.ID {
				b.Workers++
			}
		}
		if b.Runs, err = c.count(ctx, heldRuns(name, b.ID)); err != nil {
			return nil, err
		}
		if b.LongRunning, err = c.count(ctx, heldLongRunning(name, b.ID)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// routing is Get without what builds hold.
func (c *DeploymentClient) routing(ctx context.Context, name string) (*Deployment, error) {
	response, err := read(ctx, c.conn, c.temporal.WorkflowService().DescribeWorkerDeployment, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: c.namespace, DeploymentName: name,
	})
	if isNotFound(err) {
		return nil, absentErrorf("no versioned worker of deployment %s has come yet", name)
	}
	if err != nil {
		return nil, explain("deployment "+name, err)
	}
	info := response.GetWorkerDeploymentInfo()
	d := &Deployment{
		Name: name, token: response.GetConflictToken(),
		propagated: info.GetRoutingConfigUpdateState() != enumspb.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS,
	}
	for _, v := range info.GetVersionSummaries() {
		b := Build{ID: v.GetDeploymentVersion().GetBuildId(), Status: v.GetStatus(), Created: v.GetCreateTime().AsTime()}
		if at := v.GetLastCurrentTime(); at != nil {
			b.LastCurrent = at.AsTime()
		}
		if at := v.GetLastDeactivationTime(); at != nil {
			b.Left = at.AsTime()
		}
		if b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING {
			b.Percentage = info.GetRoutingConfig().GetRampingVersionPercentage()
		}
		d.Builds = append(d.Builds, b)
	}
	slices.SortFunc(d.Builds, func(a, b Build) int { return b.Created.Compare(a.Created) })
	return d, nil
}

// longRunning are the workflows that change builds where they continue as new.
var longRunning = fmt.Sprintf("WorkflowType IN ('%s', '%s', '%s')", contract.ContinuousJobType, contract.JobQueueType, contract.AppliedJobsType)

// deploymentVersion is the search attribute of the build that did the latest workflow task.
const deploymentVersion = "TemporalWorkerDeploymentVersion"

// held finds the open workflows whose latest workflow task was done by a build.
func held(name, build string) string {
	return deploymentVersion + " = " + quote(name+":"+build) + " AND ExecutionStatus = 'Running'"
}

func heldRuns(name, build string) string {
	return held(name, build) + fmt.Sprintf(" AND WorkflowType IN ('%s', '%s')", contract.RunJobType, contract.EndPauseType)
}

func heldLongRunning(name, build string) string { return held(name, build) + " AND " + longRunning }

func (c *conn) count(ctx context.Context, query string) (int64, error) {
	response, err := read(ctx, c, c.temporal.WorkflowService().CountWorkflowExecutions, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: c.namespace, Query: query,
	})
	return response.GetCount(), explain("count workflows", err)
}
