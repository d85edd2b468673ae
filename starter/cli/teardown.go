package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) teardownCommand() *cobra.Command {
	cmd := group("teardown", "Delete organizations with everything that they have",
		i.teardownPlanCommand(), i.teardownStartCommand(), i.teardownDescribeCommand(),
		i.oneCommand(verbs.UndoTeardown, verbHelp{"Take the mark of a deleted organization away", `undo takes the mark away, and the job that waits for the purge. The jobs of the
organization's integrations come back. It is refused from the purge time on.`}, "ORGANIZATION"))
	cmd.Long = `teardown deletes an organization in stages. start marks it, which stops its jobs.
Until its purge time, undo takes the mark away. Then a job removes its jobs,
consumers, variants, databases and, if that was asked for, its archive.

ORGANIZATION is an id or a slug. The server asks the platform. Without --server that
is this process, for which DENDRA_PLATFORM_URL and DENDRA_PLATFORM_TOKEN name the
Platform API. Where buckets and databases are, says DENDRA_PLACES of the backend
worker.`
	return cmd
}

// teardownReport is the output of a run of a teardown.
type teardownReport struct {
	Stages []teardownStage `json:"stages"`
}

type teardownStage struct {
	Name   string `json:"name"`
	Things []struct {
		Kind    string   `json:"kind"`
		Count   int64    `json:"count"`
		Samples []string `json:"samples"`
	} `json:"things"`
	Blocked  []string `json:"blocked"`
	Kept     []string `json:"kept"`
	KeptMore int      `json:"kept_more"`
}

// reportIn is the report of a run, nil if it has none yet.
func reportIn(run *jobsv1.Run) (*teardownReport, error) {
	value := run.GetOutput()
	if value == nil {
		value = run.GetCursor()
	}
	if value == nil {
		return nil, nil //nolint:nilnil // Documented: it has none.
	}
	report := &teardownReport{}
	return report, decodeValue(value, report)
}

// decodeValue reads the output of a run.
func decodeValue(value *structpb.Value, into any) error {
	text, err := value.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// planTeardown has a worker tell what a teardown would remove, and gives the run.
func (i *invocation) planTeardown(ctx context.Context, a verbs.Args, deleteArchive *bool) (*jobsv1.Run, *teardownReport, error) {
	a.With = &jobsv1.PlanTeardownRequest{DeleteArchive: deleteArchive}
	planned, err := i.do(ctx, verbs.PlanTeardown, a)
	if err != nil {
		return nil, nil, err
	}
	run, err := i.completed(ctx, planned.Run)
	if err != nil {
		return nil, nil, err
	}
	report, err := reportIn(run)
	return run, report, err
}

// completed follows a run to its end, and gives it with an error if it has not completed.
func (i *invocation) completed(ctx context.Context, name string) (*jobsv1.Run, error) {
	line := i.newProgress()
	run, err := watch(ctx, i.api, name, func(run *jobsv1.Run) {
		if verbs.Open(run.GetStatus()) {
			line.show(runProgress(run), i.since(run))
		}
	})
	line.clear()
	if err != nil {
		return nil, err
	}
	return run, runError(run)
}

// Words of --archive.
const (
	archiveKeep   = "keep"
	archiveDelete = "delete"
)

func (i *invocation) teardownPlanCommand() *cobra.Command {
	var archive string
	var flags verbFlags
	cmd := &cobra.Command{
		Use:         "plan ORGANIZATION",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Show what a teardown would remove, and what blocks it",
		Long: `plan has a backend worker count what a teardown would remove, with a few names of
each kind. Nothing is changed.

Exit codes: 0 nothing blocks the teardown, 1 error, 2 something blocks it.`,
		Args: arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var deleteArchive *bool
			if archive != "" {
				deleteArchive = proto.Bool(archive == archiveDelete)
			}
			run, report, err := i.planTeardown(cmd.Context(), flags.args(verbs.PlanTeardown, args[0]), deleteArchive)
			if err != nil {
				return err
			}
			if err := i.emit(run, func(w io.Writer) error { return i.writeTeardown(w, report) }); err != nil {
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
	flags.register(cmd, verbs.PlanTeardown)
	return cmd
}

func blocked(report *teardownReport) bool {
	return report != nil && slices.ContainsFunc(report.Stages, func(s teardownStage) bool { return len(s.Blocked) > 0 })
}

// writeTeardown shows the stages of a report.
func (i *invocation) writeTeardown(w io.Writer, report *teardownReport) error {
	lines := &lineWriter{w: w}
	if report == nil {
		return nil
	}
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
	var deleteArchive bool
	var flags verbFlags
	cmd := &cobra.Command{
		Use:   "start ORGANIZATION",
		Short: "Mark an organization as deleted",
		Long: `start shows what will be removed and asks. Then it marks the organization as
deleted, which stops the jobs of its integrations, and has the teardown begin when
the grace period is over. Without --grace the platform says how long that is. With
--yes it neither counts nor asks.`,
		Example: `  starter teardown start ucnrs --grace P7D`,
		Args:    arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &jobsv1.StartTeardownRequest{DeleteArchive: deleteArchive}
			if cmd.Flags().Changed("grace") {
				period, err := parseGrace(grace)
				if err != nil {
					return misuse(cmd, "--grace: %s", err)
				}
				request.GracePeriod = durationpb.New(period.Std())
			}
			request.Reason = flags.reason
			return i.startTeardown(cmd.Context(), args[0], request, flags.yes)
		},
	}
	cmd.Flags().Var(textValue{&grace, "DURATION"}, "grace", "how long it can be undone, as P7D; 0 begins at once")
	cmd.Flags().BoolVar(&deleteArchive, "delete-archive", false, "remove the archive of raw messages too")
	flags.register(cmd, verbs.StartTeardown)
	flags.registerYes(cmd)
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

// startTeardown marks an organization, once it was asked with what it has.
func (i *invocation) startTeardown(ctx context.Context, name string, request *jobsv1.StartTeardownRequest, yes bool) error {
	before, err := i.api.Teardowns.GetTeardown(ctx, &jobsv1.GetTeardownRequest{Organization: name})
	if err != nil {
		return err
	}
	v, found := verbs.StartTeardown, before.GetTeardown()
	if v.Applies(verbs.OfTeardown(found)) && !yes {
		run, report, err := i.planTeardown(ctx, verbs.To(name), proto.Bool(request.GetDeleteArchive()))
		if err != nil {
			return err
		}
		if err := i.writeTeardown(i.errs(), report); err != nil {
			return err
		}
		question := v.Ask(verbs.To(fmt.Sprintf("%s (%s)", found.GetOrganization(), found.GetOrganizationId())))
		if len(run.GetCounts()) > 0 {
			question += " It has " + strings.ReplaceAll(counts(run.GetCounts()), "_", " ") + "."
		}
		if err := i.ask(ctx, question, v.Command, "to delete it", "nothing was deleted"); err != nil {
			return err
		}
	}
	a := verbs.To(found.GetOrganizationId()) // Which was asked about.
	a.With = request
	done, err := i.do(ctx, v, a)
	if err != nil {
		return err
	}
	return i.tell(done)
}

func (i *invocation) teardownDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe ORGANIZATION",
		Short: "Show how far the teardown of an organization is",
		Args:  arguments("ORGANIZATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			response, err := i.api.Teardowns.GetTeardown(cmd.Context(), &jobsv1.GetTeardownRequest{Organization: args[0]})
			if err != nil {
				return err
			}
			return i.emit(response, func(w io.Writer) error { return i.writeState(w, response.GetTeardown()) })
		},
	}
}

func (i *invocation) writeState(w io.Writer, state *jobsv1.Teardown) error {
	s := &sheet{}
	s.add("Organization", "%s (%s)", state.GetOrganization(), state.GetOrganizationId())
	if state.GetDeleteTime() == nil {
		s.add("Deleted", "no")
	} else {
		archive := "kept"
		if state.GetDeleteArchive() {
			archive = "deleted"
		}
		s.add("Deleted", "%s", i.when(toTime(state.GetDeleteTime())))
		s.add("Purge", "%s", i.when(toTime(state.GetPurgeTime())))
		s.add("Archive", "%s", archive)
		s.add("Left", "%s", strings.Join(state.GetFinalizers(), ", "))
	}
	if run := state.GetRun(); run != nil {
		failure := run.GetLastError()
		if failure == "" {
			failure = run.GetErrorMessage()
		}
		s.add("Job", "%s, %s", state.GetJobId(), wordOf(run.GetStatus()))
		s.add("Message", "%s", run.GetMessage())
		s.add("Error", "%s", failure)
		s.add("Next attempt", "%s", i.when(toTime(run.GetNextAttemptTime())))
	}
	report, err := reportIn(state.GetRun())
	if err := errors.Join(err, s.write(w)); err != nil || report == nil || len(report.Stages) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w, "\nRemoved so far:"); err != nil {
		return err
	}
	return i.writeTeardown(w, report)
}
