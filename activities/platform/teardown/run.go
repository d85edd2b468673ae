package teardown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/report"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Clients are the stores that things of organizations are in, and where these are.
type Clients struct {
	Places   places.Places
	Platform *platform.Client
	Store    *objects.Store
	Pipeline *pipeline.Client
}

// teardown is one attempt of a run.
type teardown struct {
	job.Run
	Clients
	spec         Spec
	organization *platformv1.Organization
	report       *Report
	stage        *report.Stage // at work

	lists // of the platform, for the stage at work
}

// Run goes through the stages whose finalizers are left. After an interruption the next
// attempt goes on where it was: what is removed is not there any more.
func Run(ctx context.Context, run job.Run, clients Clients, spec Spec) (job.Result, error) {
	t := &teardown{Run: run, Clients: clients, spec: spec, report: &Report{}}
	if _, err := run.Cursor(t.report); err != nil {
		return job.Result{}, err
	}
	organization, err := t.get(ctx, spec.OrganizationID)
	switch {
	case connect.CodeOf(err) == connect.CodeNotFound:
		return t.result("organization %s is gone", spec.OrganizationID), nil
	case err != nil:
		return job.Result{}, platform.Explain(err)
	}
	t.organization = organization
	t.report.OrganizationID, t.report.Slug, t.report.DryRun = organization.GetId(), organization.GetSlug(), spec.DryRun
	if spec.DryRun {
		return t.plan(ctx)
	}
	if t.spec.DeleteTime.IsZero() && organization.GetDeleteTime() != nil {
		t.spec.DeleteTime = organization.GetDeleteTime().AsTime()
	}
	result, err := t.purge(ctx)
	return result, keepTrying(err)
}

// keepTrying makes every error one that is worth another attempt: someone or time will
// mend what is wrong, and what is left has to go.
func keepTrying(err error) error {
	failure := (*job.Failure)(nil)
	if errors.As(err, &failure) && failure.Kind.Final() {
		return job.Retryable(failure.Class, time.Minute, "%w", err)
	}
	return err
}

// plan tells what all stages that are left would do.
func (t *teardown) plan(ctx context.Context) (job.Result, error) {
	t.report.Stages = nil
	blocked := 0
	for _, name := range Stages() {
		if t.organization.GetDeleteTime() != nil && !slices.Contains(t.organization.GetFinalizers(), name) {
			continue
		}
		if err := t.work(ctx, name); err != nil {
			return t.result("plan"), err
		}
		blocked += len(t.stage.Blocked)
	}
	if blocked > 0 {
		return t.result("would remove %s; blocked by %d", t.report.Text(), blocked), nil
	}
	return t.result("would remove %s", t.report.Text()), nil
}

// purge removes the parts that are left, and a finalizer after each.
func (t *teardown) purge(ctx context.Context) (job.Result, error) {
	for _, name := range Stages() {
		if t.organization.GetDeleteTime() == nil {
			return t.result("organization %s is not marked as deleted: nothing is done", t.organization.GetSlug()), nil
		}
		if marked := t.organization.GetDeleteTime().AsTime(); !marked.Equal(t.spec.DeleteTime) {
			return t.result("organization %s was marked anew, at %s: another run is for that", t.organization.GetSlug(), marked.Format(time.RFC3339)), nil
		}
		if !slices.Contains(t.organization.GetFinalizers(), name) {
			continue
		}
		if wait := time.Until(t.organization.GetPurgeTime().AsTime()); wait > 0 {
			return t.result("not due"), job.FailAfter(errclass.PurgeNotDue, min(wait, time.Minute), "the purge of organization %s is due at %s",
				t.organization.GetSlug(), t.organization.GetPurgeTime().AsTime().Format(time.RFC3339))
		}
		if err := t.work(ctx, name); err != nil {
			return t.result("at stage %s", name), err
		}
		// The first one proves that the purge has begun. Until then nothing is gone that does
		// not come back by itself.
		if err := t.finish(ctx, name); err != nil {
			return t.result("at stage %s", name), err
		}
	}
	if left := t.organization.GetFinalizers(); len(left) > 0 {
		return t.result("removed %s; these finalizers are left to others: %s", t.report.Text(), strings.Join(left, ", ")), nil
	}
	return t.result("removed %s", t.report.Text()), nil
}

// work does a stage.
func (t *teardown) work(ctx context.Context, name string) error {
	t.stage, t.lists = t.report.stage(name), lists{}
	t.stage.Blocked, t.stage.Kept, t.stage.KeptMore = nil, nil, 0
	t.save("stage " + name)
	err := map[string]func(context.Context) error{
		stageJobs: t.jobs, stageConsumers: t.consumers, stageVariants: t.variants, stageDatabases: t.databases, stageArchive: t.archive,
	}[name](ctx)
	t.save("stage " + name)
	return err
}

// finish removes the finalizer of a stage.
func (t *teardown) finish(ctx context.Context, name string) error {
	answer, err := t.Platform.Organizations.RemoveOrganizationFinalizer(ctx, &platformv1.RemoveOrganizationFinalizerRequest{
		Id: t.organization.GetId(), Finalizer: name,
	})
	switch {
	case connect.CodeOf(err) == connect.CodeNotFound: // An earlier attempt has removed the last one.
		t.organization.Finalizers = nil
	case platform.Reason(err) == platformv1.ErrorReason_ERROR_REASON_PURGE_NOT_DUE:
		return job.FailAfter(errclass.PurgeNotDue, time.Second, "the purge of organization %s is not due, says the Platform API", t.organization.GetSlug())
	case err != nil:
		return platform.Explain(err)
	default:
		t.organization = answer.GetOrganization()
	}
	t.stage.Done = true
	t.save("stage " + name + " done")
	return nil
}

func (t *teardown) get(ctx context.Context, id string) (*platformv1.Organization, error) {
	answer, err := t.Platform.Organizations.GetOrganization(ctx, &platformv1.GetOrganizationRequest{Id: id})
	return answer.GetOrganization(), err
}

// unblocked is an error if something blocks the stage. A dry run goes on.
func (t *teardown) unblocked() error {
	if t.spec.DryRun || len(t.stage.Blocked) == 0 {
		return nil
	}
	return job.Fail(errclass.TeardownBlocked, "stage %s of the teardown of organization %s: %s",
		t.stage.Name, t.organization.GetSlug(), strings.Join(t.stage.Blocked, "; "))
}

// remove removes a thing and counts it as n. A dry run only counts.
func (t *teardown) remove(ctx context.Context, kind, name string, n int64, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if job.Stopped(t.Run) {
		return job.ErrStopped
	}
	if !t.spec.DryRun {
		if err := do(ctx); err != nil {
			return err
		}
	}
	t.stage.Add(kind, name, n, 0)
	t.save("stage " + t.stage.Name)
	return nil
}

// save reports how far the run is.
func (t *teardown) save(message string) {
	done := int64(0)
	for _, n := range t.report.Counts() {
		done += n
	}
	t.Checkpoint(job.Progress{Done: done, Message: message}, t.report)
}

func (t *teardown) result(format string, args ...any) job.Result {
	return job.Result{Message: fmt.Sprintf(format, args...), Counts: t.report.Counts(), Output: job.EncodeJSON(t.report)}
}
