package teardown

import (
	"context"
	"errors"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Type is the name of the job type.
const Type = "HandleOrganizationTeardown"

// Spec is the spec of HandleOrganizationTeardown.
type Spec struct {
	OrganizationID string `json:"organization_id" pattern:"^[0-9a-f]{24}$" example:"5b0f155746a1b867a114e030" help:"organization that is torn down"`
	// DeleteTime tells one deletion from another: after an undeletion nothing is done.
	DeleteTime    time.Time `json:"delete_time,omitzero" help:"when the organization was marked as deleted: a run for another mark does nothing; defaults to the mark that it has"`
	DryRun        bool      `json:"dry_run,omitempty" help:"tells what would be removed, and removes nothing"`
	DeleteArchive bool      `json:"delete_archive,omitempty" help:"goes with dry_run: tells of the archive as well; otherwise the mark of the organization says it"`
}

// Validate reports what the schema cannot say.
func (s *Spec) Validate() error {
	var problems []error
	if s.DryRun && !s.DeleteTime.IsZero() {
		problems = append(problems, errors.New("delete_time does not go with dry_run"))
	}
	if s.DeleteArchive && !s.DryRun {
		problems = append(problems, errors.New("delete_archive goes with dry_run: the mark of the organization says whether its archive goes"))
	}
	return errors.Join(problems...)
}

// JobID is the id of the job that tears an organization down that is marked as deleted.
// Each mark has a job of its own, so that whoever hears late of an undeletion cannot end
// the teardown of the next mark.
func JobID(o *platformv1.Organization) string {
	return job.ID(Type, o.GetId()+"-"+o.GetDeleteTime().AsTime().UTC().Format("20060102t150405.000"))
}

// Job is the job that tears an organization down that is marked as deleted. It waits in
// Temporal until the purge is due.
func Job(o *platformv1.Organization) job.Job {
	j := job.Job{
		ID: JobID(o), Type: Type, Worker: job.WorkerBackend, Provider: job.ProviderTeardown,
		Spec:    job.EncodeJSON(Spec{OrganizationID: o.GetId(), DeleteTime: o.GetDeleteTime().AsTime()}),
		Trigger: job.Trigger{OneShot: &job.OneShot{At: o.GetPurgeTime().AsTime()}},
		Options: options(),
	}
	j.Options.Description = "Teardown of organization " + o.GetSlug()
	j.Options.Owner.Organization = o.GetSlug()
	return j
}

// DryRun is a one-shot that tells what a teardown would remove. Its key makes one run of
// several that are asked for.
func DryRun(o *platformv1.Organization, deleteArchive bool) job.Job {
	j := job.Job{
		ID: job.ID(Type, "plan-"+o.GetId()), Type: Type, Worker: job.WorkerBackend, Provider: job.ProviderAPI,
		Spec:    job.EncodeJSON(Spec{OrganizationID: o.GetId(), DryRun: true, DeleteArchive: deleteArchive}),
		Trigger: job.Trigger{OneShot: &job.OneShot{}}, Options: job.DefaultOptions(job.ModeOneShot),
	}
	j.Options.Description = "Plan of the teardown of organization " + o.GetSlug()
	return j
}

// options have a run tried again for as long as something blocks it.
func options() job.Options {
	o := job.DefaultOptions(job.ModeOneShot)
	o.RunTimeout = job.Duration(24 * time.Hour)
	o.MaxRetryCount = job.Unlimited
	o.RetryBackoff = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(5 * time.Minute), Coefficient: 2}
	return o
}

// Apply has the job that tears an organization down be there, if it is marked as deleted.
func Apply(ctx context.Context, jobs job.Jobs, o *platformv1.Organization) error {
	if o.GetDeleteTime() == nil {
		return nil
	}
	_, err := jobs.Apply(ctx, job.Set{Provider: job.ProviderTeardown, Only: []string{JobID(o)}, Jobs: []job.Job{Job(o)}})
	return err
}

// Withdraw ends the job of a mark that was taken away. Without it the job ends by itself
// when the purge would be due, and does nothing.
func Withdraw(ctx context.Context, jobs job.Jobs, marked *platformv1.Organization) error {
	if marked.GetDeleteTime() == nil {
		return nil
	}
	if err := jobs.Stop(ctx, JobID(marked), "the organization is not marked as deleted any more"); err != nil {
		return err // A run that waits would outlive the set.
	}
	_, err := jobs.Apply(ctx, job.Set{Provider: job.ProviderTeardown, Only: []string{JobID(marked)}})
	return err
}
