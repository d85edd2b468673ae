package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

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
	// spread says that all task queues know of the latest change.
	spread bool
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
	// Runs counts the open runs that are pinned to the build, Lasting the loops, queues and
	// records of applied jobs that are.
	Runs, Lasting int64
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
	case b.Runs+b.Lasting > 0:
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
	if b.Lasting > 0 {
		parts = append(parts, fmt.Sprintf("%d loops, queues and records", b.Lasting))
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
		case b.Runs+b.Lasting > 0:
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
		if b.Lasting, err = c.count(ctx, heldLasting(name, b.ID)); err != nil {
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
		spread: info.GetRoutingConfigUpdateState() != enumspb.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS,
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

// lasting are the workflows that change builds where they continue as new.
var lasting = fmt.Sprintf("WorkflowType IN ('%s', '%s', '%s')", contract.ContinuousJobType, contract.JobQueueType, contract.AppliedJobsType)

// deploymentVersion is the search attribute of the build that did the latest workflow task.
const deploymentVersion = "TemporalWorkerDeploymentVersion"

// held finds the open workflows whose latest workflow task was done by a build.
func held(name, build string) string {
	return deploymentVersion + " = " + quote(name+":"+build) + " AND ExecutionStatus = 'Running'"
}

func heldRuns(name, build string) string {
	return held(name, build) + fmt.Sprintf(" AND WorkflowType IN ('%s', '%s')", contract.RunJobType, contract.EndPauseType)
}

func heldLasting(name, build string) string { return held(name, build) + " AND " + lasting }

func (c *conn) count(ctx context.Context, query string) (int64, error) {
	response, err := read(ctx, c, c.temporal.WorkflowService().CountWorkflowExecutions, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: c.namespace, Query: query,
	})
	return response.GetCount(), explain("count workflows", err)
}

// Ramp gives a part of the new runs to a build, in percent; the current build keeps the rest.
// With 0 it takes none any more.
func (c *DeploymentClient) Ramp(ctx context.Context, name, build string, percentage float32) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	id := build
	switch b := d.Find(build); {
	case b == nil:
		return nil, d.unknown(build)
	case b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT:
		return nil, stateErrorf("build %s is the current build of deployment %s: it takes all new runs but those of a ramping build", build, name)
	case percentage == 0 && b.Status != enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING:
		return nil, stateErrorf("build %s takes no part of the new runs", build)
	case percentage == 0:
		build = "" // Temporal's way to end a ramp.
	}
	return c.changed(ctx, d, id, func() error {
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().SetWorkerDeploymentRampingVersion, &workflowservice.SetWorkerDeploymentRampingVersionRequest{
			Namespace: c.namespace, DeploymentName: name, BuildId: build, Percentage: percentage, ConflictToken: d.token, Identity: c.identity,
		})
		return err
	})
}

// Promote makes a build the current one: it takes all new runs. Loops, queues and records of
// applied jobs are asked to go on with it. Force does it although the build has no workers for a
// task queue that the present one serves. It is no error if the build is the current one: then
// who has not gone on is asked again.
func (c *DeploymentClient) Promote(ctx context.Context, name, build string, force bool) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	if d.Find(build) == nil {
		return nil, d.unknown(build)
	}
	return c.changed(ctx, d, build, func() error {
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().SetWorkerDeploymentCurrentVersion, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
			Namespace: c.namespace, DeploymentName: name, BuildId: build, ConflictToken: d.token, Identity: c.identity,
			IgnoreMissingTaskQueues: force, AllowNoPollers: force,
		})
		return err
	})
}

// lacksWorkers reports whether Temporal refused to give runs to a build since it does not serve
// all that the current build serves. Nothing but the text of the error says so.
func lacksWorkers(err error) bool {
	var refused *serviceerror.FailedPrecondition
	return errors.As(err, &refused) && strings.Contains(refused.Message, "missing active task queues")
}

// Rollback ends a ramp, or makes the build the current one that was it before.
func (c *DeploymentClient) Rollback(ctx context.Context, name string) (*Deployment, error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return nil, err
	}
	if ramping := d.withStatus(enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING); ramping != nil {
		return c.Ramp(ctx, name, ramping.ID, 0)
	}
	before := d.before()
	if before == nil {
		return nil, stateErrorf("no other build of deployment %s was the current one", name)
	}
	return c.Promote(ctx, name, before.ID, false)
}

// unknown says that a deployment has no such build.
func (d *Deployment) unknown(build string) error {
	var known []string
	for _, b := range d.Builds {
		known = append(known, b.ID)
	}
	return absentErrorf("deployment %s has no build %s: it has %s", d.Name, build, strings.Join(known, ", "))
}

// changed makes a change of the routing to a build, waits until the task queues know of it, and
// asks those that last to go on with their new build.
func (c *DeploymentClient) changed(ctx context.Context, d *Deployment, build string, change func() error) (*Deployment, error) {
	began := time.Now()
	err := change()
	// Workers that have just started are not known on all their task queues.
	for try := 1; lacksWorkers(err) && time.Since(began) < spreadWait && pause(ctx, callBackoff.Wait(try)) == nil; try++ {
		err = change()
	}
	var refused *serviceerror.FailedPrecondition
	switch {
	case lacksWorkers(err):
		return nil, stateErrorf("build %s has no workers for a task queue that the current build serves: start them first", build)
	case errors.As(err, &refused):
		return nil, stateErrorf("deployment %s: %s", d.Name, refused.Message)
	case err != nil:
		return nil, explain("deployment "+d.Name, err)
	}
	if err := c.awaitSpread(ctx, d.Name); err != nil {
		return nil, err
	}
	if err := c.wakeLasting(ctx, d.Name); err != nil {
		return nil, err
	}
	return c.Get(ctx, d.Name)
}

// spreadWait bounds the wait for the task queues to know of a build, and of a change.
const spreadWait = 10 * time.Second

func (c *DeploymentClient) awaitSpread(ctx context.Context, name string) error {
	began := time.Now()
	for try := 1; ; try++ {
		d, err := c.routing(ctx, name)
		if err != nil || d.spread || time.Since(began) > spreadWait {
			return err
		}
		if err := pause(ctx, callBackoff.Wait(try)); err != nil {
			return err
		}
	}
}

// wakeLasting signals all that lasts, and that another build than the current one holds. Those whose
// part of the new runs has not changed stay where they are.
func (c *DeploymentClient) wakeLasting(ctx context.Context, name string) error {
	d, err := c.routing(ctx, name)
	if err != nil {
		return err
	}
	for _, b := range d.Builds {
		if b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT && d.withStatus(enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING) == nil {
			continue
		}
		if err := c.each(ctx, heldLasting(name, b.ID), c.wake); err != nil {
			return err
		}
	}
	return nil
}

func (c *DeploymentClient) wake(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) error {
	err := c.temporal.SignalWorkflow(ctx, run.GetExecution().GetWorkflowId(), "", contract.SignalNewBuild, nil)
	if isNotFound(err) {
		return nil // It has ended meanwhile.
	}
	return explain("wake "+run.GetExecution().GetWorkflowId(), err)
}

// Move has the open workflows that one build holds go on with another, in the middle of their
// histories. It is for a build whose workers are gone, or whose code fails: what replays another
// history than its own fails until it is moved back.
func (c *DeploymentClient) Move(ctx context.Context, name, from, to string) (moved int, err error) {
	d, err := c.routing(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, id := range []string{from, to} {
		if d.Find(id) == nil {
			return 0, d.unknown(id)
		}
	}
	if from == to {
		return 0, stateErrorf("build %s is both where from and where to", from)
	}
	version := &deploymentpb.WorkerDeploymentVersion{DeploymentName: name, BuildId: to}
	var mu sync.Mutex
	err = c.each(ctx, held(name, from), func(ctx context.Context, run *workflowpb.WorkflowExecutionInfo) error {
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().UpdateWorkflowExecutionOptions, &workflowservice.UpdateWorkflowExecutionOptionsRequest{
			Namespace: c.namespace, WorkflowExecution: run.GetExecution(), Identity: c.identity,
			WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{VersioningOverride: &workflowpb.VersioningOverride{
				Override: &workflowpb.VersioningOverride_OneTime{
					OneTime: &workflowpb.VersioningOverride_OneTimeOverride{TargetDeploymentVersion: version},
				},
			}},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"versioning_override"}},
		})
		if isNotFound(err) {
			return nil
		}
		if err == nil { // A workflow that waits has no workflow task that could go there.
			err = c.wake(ctx, run)
		}
		mu.Lock()
		defer mu.Unlock()
		moved++
		return explain("move "+run.GetExecution().GetWorkflowId(), err)
	})
	return moved, err
}

// Prune removes the builds that hold nothing and have no workers, and gives their ids.
func (c *DeploymentClient) Prune(ctx context.Context, name string) (pruned []string, err error) {
	d, err := c.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, b := range d.Builds {
		if b.Workers > 0 || b.Holds(time.Now()) != "" {
			continue
		}
		_, err := call(ctx, c.conn, c.temporal.WorkflowService().DeleteWorkerDeploymentVersion, &workflowservice.DeleteWorkerDeploymentVersionRequest{
			Namespace: c.namespace, Identity: c.identity, SkipDrainage: true, // What it holds was counted.
			DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{DeploymentName: name, BuildId: b.ID},
		})
		var refused *serviceerror.FailedPrecondition
		switch {
		case errors.As(err, &refused): // Its pollers are remembered for five minutes.
		case err != nil:
			return pruned, explain("remove build "+b.ID, err)
		default:
			pruned = append(pruned, b.ID)
		}
	}
	return pruned, nil
}

// movesAtOnce bounds the workflows that are woken or moved at a time.
const movesAtOnce = 16

// each does something with each workflow that a query finds, several at a time.
func (c *conn) each(ctx context.Context, query string, do func(context.Context, *workflowpb.WorkflowExecutionInfo) error) error {
	var found []*workflowpb.WorkflowExecutionInfo
	if err := c.listWorkflows(ctx, query, 0, func(info *workflowpb.WorkflowExecutionInfo) { found = append(found, info) }); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(found))
	slots := make(chan struct{}, movesAtOnce)
	for n, info := range found {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			errs[n] = do(ctx, info)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
