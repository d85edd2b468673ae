package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// shownLog is how many log entries describe shows.
const shownLog = 10

// described is what integrations describe shows, as JSON.
type described struct {
	integration
	RefersTo   []string         `json:"refers_to"`
	ReferredBy []string         `json:"referred_by"`
	Jobs       []integrationJob `json:"jobs"`
	Log        []logLine        `json:"log"`
}

// integrationJob is a job of a config, as Temporal has it.
type integrationJob struct {
	ID     string           `json:"id"`
	Mode   job.Mode         `json:"mode"`
	Status client.JobStatus `json:"status"`
	Error  string           `json:"error,omitempty"`
	// WaitReason says what a run under way waits for.
	WaitReason string `json:"wait_reason,omitempty"`
}

type logLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

func (i *invocation) integrationsDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe CONFIG",
		Short: "Show the conditions, jobs and log of a config",
		Long: `describe shows an integration config: its conditions, the configs that it refers to
and that refer to it, its jobs as they are in Temporal, and the newest entries of its
log.`,
		Args:              arguments("CONFIG"),
		ValidArgsFunction: i.completeIntegrations,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.platformAPI()
			if err != nil {
				return err
			}
			shown, err := describeConfig(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := shown.addJobs(cmd.Context(), c.Jobs); err != nil {
				return err
			}
			return i.emit(shown, func(w io.Writer) error { return i.writeDescribed(w, shown) })
		},
	}
}

func describeConfig(ctx context.Context, api *platform.Client, id string) (*described, error) {
	config, err := getConfig(ctx, api, id)
	if err != nil {
		return nil, err
	}
	slugs, err := readNames(ctx, api)
	if err != nil {
		return nil, err
	}
	shown := &described{
		integration: newIntegration(config, slugs), RefersTo: []string{}, ReferredBy: []string{}, Jobs: []integrationJob{}, Log: []logLine{},
	}
	shown.RefersTo = append(shown.RefersTo, orchestrate.References(config)...)
	others, err := configs(ctx, api, &platformv1.ListIntegrationConfigsRequest{ReferencesConfigId: id})
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		shown.ReferredBy = append(shown.ReferredBy, other.GetId())
	}
	answer, err := api.Integrations.ListLogEntries(ctx, &platformv1.ListLogEntriesRequest{ConfigId: id, PageSize: shownLog})
	for _, entry := range answer.GetLogEntries() {
		shown.Log = append(shown.Log, logLine{
			entry.GetTime().AsTime(), strings.ToLower(strings.TrimPrefix(entry.GetLevel().String(), "LOG_LEVEL_")), entry.GetMessage(),
		})
	}
	return shown, platform.Explain(err)
}

// addJobs adds the orchestrator of the config, and the jobs that it has made.
func (d *described) addJobs(ctx context.Context, jobs *client.JobClient) error {
	found, err := jobs.FindRows(ctx, job.Filter{Provider: job.ProviderIntegration, Owner: job.Owner{Organization: d.Organization}})
	for _, f := range found {
		if f.ID == reconcile.OrchestratorID(d.ID) || f.Provider == job.IntegrationProvider(d.ID) {
			d.Jobs = append(d.Jobs, jobOf(f))
		}
	}
	return err
}

func jobOf(row client.JobRow) integrationJob {
	shown := integrationJob{ID: row.ID, Mode: row.Mode, Status: row.Status, WaitReason: row.WaitReason}
	if row.Failing != nil {
		shown.Error = row.Failing.Error
	}
	return shown
}

func (i *invocation) writeDescribed(w io.Writer, d *described) error {
	var s sheet
	s.add("Config", "%s", d.ID)
	s.add("Name", "%s", d.Name)
	s.add("Type", "%s", d.Type)
	s.add("Belongs to", "%s", d.belongs())
	s.add("Mode", "%s", d.Mode)
	s.add("State", "%s", d.state())
	s.add("Version", "%s", versions(d.integration))
	for _, c := range d.Conditions {
		s.add(c.Type, "%s", c.text())
	}
	s.add("Refers to", "%s", strings.Join(d.RefersTo, ", "))
	s.add("Referred by", "%s", strings.Join(d.ReferredBy, ", "))
	if err := s.write(w); err != nil {
		return err
	}
	t := newTable("JOB", "MODE", "STATUS")
	for _, j := range d.Jobs {
		t.add(j.ID, string(j.Mode), string(j.Status))
	}
	if err := t.section(w, "Jobs"); err != nil {
		return err
	}
	t = newTable("TIME", "LEVEL", "MESSAGE")
	for _, line := range d.Log {
		t.add(i.moment(line.Time), line.Level, line.Message)
	}
	return t.section(w, "Log, the newest first")
}

func versions(d integration) string {
	if d.Observed == d.Version {
		return fmt.Sprint(d.Version)
	}
	return fmt.Sprintf("%d; the conditions are about version %d", d.Version, d.Observed)
}

func (c condition) text() string {
	text := "no"
	if c.Status {
		text = "yes"
	}
	if c.Reason != "" {
		text += ", " + c.Reason
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}
