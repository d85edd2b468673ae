package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func (i *invocation) teardownCommand() *cobra.Command {
	cmd := group("teardown", "Delete organizations with everything that they have",
		i.teardownPlanCommand(), i.teardownStartCommand(), i.teardownDescribeCommand(), i.teardownUndoCommand())
	cmd.Long = fmt.Sprintf(`teardown deletes an organization in stages. start marks it, which stops its jobs.
Until its purge time, undo takes the mark away. Then a job removes its jobs,
consumers, variants, databases and, if that was asked for, its archive.

ORGANIZATION is an id or a slug. %s and %s name the
Platform API. Where buckets and databases are, says the job of type
%s.`, platform.EnvURL, platform.EnvToken, teardown.SubscriberType)
	return cmd
}

// tearing is what the commands work with.
type tearing struct {
	*invocation
	api          *platform.Client
	client       *client.Client
	organization *platformv1.Organization
}

// openTeardown connects, and finds the organization.
func (i *invocation) openTeardown(ctx context.Context, name string) (*tearing, error) {
	api, err := i.platformAPI()
	if err != nil {
		return nil, err
	}
	t := &tearing{invocation: i, api: api}
	if t.organization, err = t.find(ctx, name); err != nil {
		return nil, err
	}
	t.client, err = i.connect(ctx)
	return t, err
}

// find gives the organization with an id, or else the only one with a slug.
func (t *tearing) find(ctx context.Context, name string) (*platformv1.Organization, error) {
	var found []*platformv1.Organization
	err := platform.Pages(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := t.api.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageToken: token, ShowDeleted: true})
		for _, o := range page.GetOrganizations() {
			if o.GetId() == name {
				found = []*platformv1.Organization{o}
				return "", nil
			}
			if o.GetSlug() == name {
				found = append(found, o)
			}
		}
		return page.GetNextPageToken(), err
	})
	switch {
	case err != nil:
		return nil, platform.Explain(err)
	case len(found) == 0:
		return nil, fmt.Errorf("there is no organization %s", clean(name))
	case len(found) > 1:
		ids := make([]string, len(found))
		for n, o := range found {
			ids[n] = o.GetId()
		}
		return nil, fmt.Errorf("several organizations have the slug %s: give the id of one, %s", clean(name), strings.Join(ids, ", "))
	}
	return found[0], nil
}

// places reads where things of organizations are, from the job that follows the changes.
func (t *tearing) places(ctx context.Context) (teardown.Places, error) {
	found, err := t.client.Jobs.Find(ctx, job.Filter{Type: teardown.SubscriberType})
	if err != nil {
		return teardown.Places{}, err
	}
	var places []teardown.Places
	for _, f := range found {
		live, err := t.client.Jobs.LiveWorkflow(ctx, f.ID)
		if err != nil || live == nil {
			return teardown.Places{}, errors.Join(err, aboutJob(t.client, f.ID, err))
		}
		of, err := teardown.PlacesOf(live.Job.Spec)
		if err != nil {
			return of, err
		}
		if !slices.ContainsFunc(places, func(p teardown.Places) bool { return reflect.DeepEqual(p, of) }) {
			places = append(places, of)
		}
	}
	switch len(places) {
	case 0:
		t.note("No job of type %s runs: the buckets are the default ones, and databases stay.", teardown.SubscriberType)
		return teardown.Places{}, nil
	case 1:
		return places[0], nil
	}
	return teardown.Places{}, fmt.Errorf("several jobs of type %s name other buckets or locations: stop all but one", teardown.SubscriberType)
}

// plan has a worker tell what a teardown would remove.
func (t *tearing) plan(ctx context.Context, deleteArchive bool) (*teardown.Report, error) {
	places, err := t.places(ctx)
	if err != nil {
		return nil, err
	}
	triggered, err := t.client.Jobs.TriggerJob(ctx, teardown.DryRun(t.organization, deleteArchive, places))
	if err != nil {
		return nil, err
	}
	line := t.newProgress()
	detail, err := t.client.Runs.Follow(ctx, triggered.Run, func(detail *client.RunDetail) { line.show(runProgress(api.RunMessage(detail)), detail.Duration()) })
	line.clear()
	if err == nil {
		err = runError(api.RunMessage(detail))
	}
	if err != nil {
		return nil, err
	}
	return reportIn(detail)
}

// reportIn is the report of a run, nil if it has none yet.
func reportIn(detail *client.RunDetail) (*teardown.Report, error) {
	text := detail.Cursor
	if detail.Output != nil && len(detail.Output.Result.Output) > 0 {
		text = detail.Output.Result.Output
	}
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // Documented: it has none.
	}
	report := &teardown.Report{}
	return report, json.Unmarshal(text, report)
}

// Words of --archive.
const (
	archiveKeep   = "keep"
	archiveDelete = "delete"
)

func (i *invocation) teardownPlanCommand() *cobra.Command {
	var archive string
	cmd := &cobra.Command{
		Use:         "plan ORGANIZATION",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Show what a teardown would remove, and what blocks it",
		Long: `plan has a backend worker count what a teardown would remove, with a few names of
each kind. Nothing is changed.

Exit codes: 0 nothing blocks the teardown, 1 error, 2 something blocks it.`,
		Args: arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := i.openTeardown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			report, err := t.plan(cmd.Context(), archive == archiveDelete || archive == "" && t.organization.GetDeleteArchive())
			if err != nil {
				return err
			}
			if err := i.emit(report, func(w io.Writer) error { return i.writeTeardown(w, report) }); err != nil {
				return err
			}
			if blocked(report) {
				return errChanges
			}
			return nil
		},
	}
	cmd.Flags().Var(choose(&archive, archiveKeep, archiveDelete), "archive", "keep or delete the archive (default: keep, or as the organization was marked)")
	completeFixed(cmd, "archive", archiveKeep, archiveDelete)
	return cmd
}

func blocked(report *teardown.Report) bool {
	return report != nil && slices.ContainsFunc(report.Stages, func(s *teardown.Stage) bool { return len(s.Blocked) > 0 })
}

// writeTeardown shows the stages of a report.
func (i *invocation) writeTeardown(w io.Writer, report *teardown.Report) error {
	lines := &lineWriter{w: w}
	for _, s := range report.Stages {
		lines.printf("%s", s.Name)
		for _, things := range s.Things {
			lines.printf("  %s %s: %d", i.paint(red, "-"), strings.ReplaceAll(things.Kind, "_", " "), things.Count)
			for _, name := range things.Samples {
				lines.printf("      %s", clean(name))
			}
			if more := things.Count - int64(len(things.Samples)); more > 0 && things.Count > int64(len(things.Samples)) && len(things.Samples) > 1 {
				lines.printf("      and more")
			}
		}
		for _, text := range s.Kept {
			lines.printf("  %s %s", i.paint(faint, "="), clean(text))
		}
		if s.KeptMore > 0 {
			lines.printf("  %s and %d more are left", i.paint(faint, "="), s.KeptMore)
		}
		for _, text := range s.Blocked {
			lines.printf("  %s %s", i.paint(red, "!"), clean(text))
		}
	}
	return lines.err
}

func (i *invocation) teardownStartCommand() *cobra.Command {
	var grace string
	var deleteArchive, yes bool
	cmd := &cobra.Command{
		Use:   "start ORGANIZATION",
		Short: "Mark an organization as deleted",
		Long: `start shows what will be removed and asks. Then it marks the organization as
deleted, which stops the jobs of its integrations, and has the teardown begin when
the grace period is over. Without --grace the platform says how long that is.`,
		Example: `  starter teardown start ucnrs --grace P7D`,
		Args:    arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := i.openTeardown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			request := &platformv1.DeleteOrganizationRequest{Id: t.organization.GetId(), DeleteArchive: deleteArchive}
			if cmd.Flags().Changed("grace") {
				period, err := parseGrace(grace)
				if err != nil {
					return misuse(cmd, "--grace: %s", err)
				}
				request.GracePeriod = durationpb.New(period.Std())
			}
			return t.begin(cmd.Context(), request, yes)
		},
	}
	cmd.Flags().Var(textValue{&grace, "DURATION"}, "grace", "how long it can be undone, as P7D; 0 begins at once")
	cmd.Flags().BoolVar(&deleteArchive, "delete-archive", false, "remove the archive of raw messages too")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask, and do not count first")
	return cmd
}

// parseGrace reads a grace period, which may be none.
func parseGrace(text string) (job.Duration, error) {
	if slices.Contains([]string{"0", "P0D", "PT0S"}, text) {
		return 0, nil
	}
	var period job.Duration
	err := durationOf(&period).Set(text)
	return period, err
}

// begin marks an organization, and applies its teardown.
func (t *tearing) begin(ctx context.Context, request *platformv1.DeleteOrganizationRequest, yes bool) error {
	places, err := t.places(ctx)
	if err != nil {
		return err
	}
	if t.organization.GetDeleteTime() == nil && !yes {
		report, err := t.plan(ctx, request.GetDeleteArchive())
		if err != nil {
			return err
		}
		if err := t.writeTeardown(t.Stderr, report); err != nil {
			return err
		}
		question := fmt.Sprintf("Delete organization %s (%s) with %s?", t.organization.GetSlug(), t.organization.GetId(), report.Text())
		if err := t.ask(ctx, question, "teardown start", "to delete it", "nothing was deleted"); err != nil {
			return err
		}
	}
	if t.organization.GetDeleteTime() != nil {
		t.note("Organization %s is marked as deleted already; the mark stays as it is.", t.organization.GetSlug())
	}
	within, cancel := context.WithTimeout(ctx, platform.Timeout)
	defer cancel()
	answer, err := t.api.Organizations.DeleteOrganization(within, request)
	if err != nil {
		return platform.Explain(err)
	}
	t.organization = answer.GetOrganization()
	if err := teardown.Apply(ctx, schedules.NewJobs(t.client), t.organization, places); err != nil {
		return fmt.Errorf("organization %s is marked, but its teardown cannot be applied: %w", t.organization.GetSlug(), err)
	}
	return t.show(ctx)
}

func (i *invocation) teardownDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe ORGANIZATION",
		Short: "Show how far the teardown of an organization is",
		Args:  arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := i.openTeardown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return t.show(cmd.Context())
		},
	}
}

// teardownState is how far a teardown is, as JSON.
type teardownState struct {
	OrganizationID string    `json:"organization_id"`
	Slug           string    `json:"slug"`
	Deleted        time.Time `json:"delete_time,omitzero"`
	Purge          time.Time `json:"purge_time,omitzero"`
	DeleteArchive  bool      `json:"delete_archive"`
	// Finalizers are those that are left.
	Finalizers []string `json:"finalizers"`
	JobID      string   `json:"job_id,omitempty"`
	// Status is that of the job's latest run, "" if there is none.
	Status      client.RunStatus `json:"status,omitempty"`
	LastError   string           `json:"last_error,omitempty"`
	NextAttempt time.Time        `json:"next_attempt,omitzero"`
	Message     string           `json:"message,omitempty"`
	// Report is what the run has removed so far.
	Report *teardown.Report `json:"report,omitempty"`
}

// show shows how far the teardown is.
func (t *tearing) show(ctx context.Context) error {
	o := t.organization
	state := teardownState{
		OrganizationID: o.GetId(), Slug: o.GetSlug(), DeleteArchive: o.GetDeleteArchive(),
		Finalizers: append([]string{}, o.GetFinalizers()...),
	}
	detail, err := (*client.RunDetail)(nil), error(nil)
	if o.GetDeleteTime() != nil {
		state.Deleted, state.Purge, state.JobID = o.GetDeleteTime().AsTime(), o.GetPurgeTime().AsTime(), teardown.JobID(o)
		detail, err = t.client.Runs.Get(ctx, client.RunRef{WorkflowID: contract.JobWorkflowID(state.JobID)})
	}
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return err
	}
	if err == nil && detail != nil {
		state.Status, state.LastError, state.NextAttempt, state.Message = detail.Status, detail.LastError, detail.NextAttempt, detail.Message
		if state.LastError == "" {
			state.LastError = detail.Error
		}
		if state.Report, err = reportIn(detail); err != nil {
			return err
		}
	}
	return t.emit(state, func(w io.Writer) error { return t.writeState(w, state) })
}

func (t *tearing) writeState(w io.Writer, state teardownState) error {
	s := &sheet{}
	s.add("Organization", "%s (%s)", state.Slug, state.OrganizationID)
	if state.Deleted.IsZero() {
		s.add("Deleted", "no")
	} else {
		archive := "kept"
		if state.DeleteArchive {
			archive = "deleted"
		}
		s.add("Deleted", "%s", t.when(state.Deleted))
		s.add("Purge", "%s", t.when(state.Purge))
		s.add("Archive", "%s", archive)
		s.add("Left", "%s", strings.Join(state.Finalizers, ", "))
	}
	if state.Status != "" {
		s.add("Job", "%s, %s", state.JobID, state.Status)
		s.add("Message", "%s", state.Message)
		s.add("Error", "%s", state.LastError)
		s.add("Next attempt", "%s", t.when(state.NextAttempt))
	}
	if err := s.write(w); err != nil || state.Report == nil || len(state.Report.Stages) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w, "\nRemoved so far:"); err != nil {
		return err
	}
	return t.writeTeardown(w, state.Report)
}

func (i *invocation) teardownUndoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "undo ORGANIZATION",
		Short: "Take the mark of a deleted organization away",
		Long: `undo takes the mark away, and the job that waits for the purge. The jobs of the
organization's integrations come back. It is refused from the purge time on.`,
		Args: arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := i.openTeardown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return t.undo(cmd.Context())
		},
	}
}

func (t *tearing) undo(ctx context.Context) error {
	if t.organization.GetDeleteTime() == nil {
		t.note("Organization %s is not marked as deleted.", t.organization.GetSlug())
	}
	within, cancel := context.WithTimeout(ctx, platform.Timeout)
	defer cancel()
	answer, err := t.api.Organizations.UndeleteOrganization(within, &platformv1.UndeleteOrganizationRequest{Id: t.organization.GetId()})
	switch {
	case platform.Reason(err) == platformv1.ErrorReason_ERROR_REASON_PURGE_BEGUN:
		return fmt.Errorf("organization %s is being purged since %s and does not come back (PURGE_BEGUN)",
			t.organization.GetSlug(), utc(t.organization.GetPurgeTime().AsTime()))
	case err != nil:
		return platform.Explain(err)
	}
	marked := t.organization
	t.organization = answer.GetOrganization()
	if err := teardown.Withdraw(ctx, schedules.NewJobs(t.client), marked); err != nil {
		return fmt.Errorf("organization %s is back, but the job of its teardown cannot be removed: %w", t.organization.GetSlug(), err)
	}
	return t.show(ctx)
}
