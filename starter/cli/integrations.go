package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) integrationsCommand() *cobra.Command {
	cmd := group("integrations", "List, check and switch integration configs of the platform",
		i.integrationsListCommand(), i.integrationsDescribeCommand(), i.integrationsCheckCommand(),
		i.oneCommand(verbs.EnableIntegration, verbHelp{"Switch a config on, unless something is wrong with it", `enable has the jobs of a config run. A config with which something is wrong stays as
it is; integrations check says what.`}, "CONFIG"),
		i.oneCommand(verbs.DisableIntegration, verbHelp{
			"Switch a config off", "disable has the jobs of a config stop: first extract jobs, then prepare, then load.",
		}, "CONFIG"))
	cmd.Long = `integrations shows the integration configs of the platform, and switches them on and
off. A job of type ReconcileJobs makes and removes their jobs within seconds.

The server asks the platform. Without --server that is this process, for which
DENDRA_PLATFORM_URL and DENDRA_PLATFORM_TOKEN name the Platform API.`
	return cmd
}

// belongs is the organization of a config, and its station.
func belongs(c *jobsv1.Integration) string {
	name := c.GetOrganization()
	if name == "" {
		name = c.GetOrganizationId()
	}
	switch {
	case c.GetStation() != "":
		name += "/" + c.GetStation()
	case c.GetStationId() != "":
		name += "/" + c.GetStationId()
	}
	return name
}

// integrationState is one word about a config.
func integrationState(c *jobsv1.Integration) string {
	return strings.ReplaceAll(wordOf(c.GetState()), "_", " ")
}

func (i *invocation) integrationsListCommand() *cobra.Command {
	var organization string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List integration configs",
		Long: `list shows the integration configs, and whether their jobs run:

  disabled   it is switched off
  ready      its jobs run
  degraded   they run, and one of them fails
  not ready  a job is not there; integrations describe says why`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			listed, err := i.api.Integrations.ListIntegrations(cmd.Context(), &jobsv1.ListIntegrationsRequest{Organization: organization})
			if err != nil {
				return err
			}
			return i.emit(listed, func(w io.Writer) error {
				if i.noteEmpty("integration configs", len(listed.GetIntegrations())) {
					return nil
				}
				t := newTable("CONFIG", "TYPE", "BELONGS TO", "MODE", "STATE")
				for _, c := range listed.GetIntegrations() {
					t.add(c.GetId(), c.GetType(), belongs(c), c.GetOperationMode(), integrationState(c))
				}
				return t.write(w)
			})
		},
	}
	cmd.Flags().StringVar(&organization, "organization", "", "only those of the organization with this slug or id")
	return cmd
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
			shown, err := i.api.Integrations.GetIntegration(cmd.Context(), &jobsv1.GetIntegrationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return i.emit(shown, func(w io.Writer) error { return i.writeIntegration(w, shown) })
		},
	}
}

func (i *invocation) writeIntegration(w io.Writer, d *jobsv1.GetIntegrationResponse) error {
	var s sheet
	c := d.GetIntegration()
	s.add("Config", "%s", c.GetId())
	s.add("Name", "%s", c.GetDisplayName())
	s.add("Type", "%s", c.GetType())
	s.add("Belongs to", "%s", belongs(c))
	s.add("Mode", "%s", c.GetOperationMode())
	s.add("State", "%s", integrationState(c))
	s.add("Version", "%s", versions(c))
	for _, condition := range c.GetConditions() {
		s.add(condition.GetType(), "%s", conditionText(condition))
	}
	s.add("Refers to", "%s", strings.Join(d.GetRefersTo(), ", "))
	s.add("Referred by", "%s", strings.Join(d.GetReferredBy(), ", "))
	if err := s.write(w); err != nil {
		return err
	}
	t := newTable("JOB", "MODE", "STATUS")
	for _, j := range d.GetJobs() {
		t.add(j.GetId(), string(api.ModeOf(j)), wordOf(j.GetState().GetStatus()))
	}
	if err := t.section(w, "Jobs"); err != nil {
		return err
	}
	t = newTable("TIME", "LEVEL", "MESSAGE")
	for _, entry := range d.GetLogEntries() {
		t.add(i.moment(toTime(entry.GetLogTime())), entry.GetLevel(), entry.GetMessage())
	}
	return t.section(w, "Log, the newest first")
}

func versions(c *jobsv1.Integration) string {
	if c.GetObservedVersion() == c.GetVersion() {
		return fmt.Sprint(c.GetVersion())
	}
	return fmt.Sprintf("%d; the conditions are about version %d", c.GetVersion(), c.GetObservedVersion())
}

func conditionText(c *jobsv1.IntegrationCondition) string {
	text := "no"
	if c.GetHolds() {
		text = "yes"
	}
	if c.GetReason() != "" {
		text += ", " + c.GetReason()
	}
	if c.GetMessage() != "" {
		text += ": " + c.GetMessage()
	}
	return text
}

func (i *invocation) integrationsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check CONFIG",
		Short: "Say what is wrong with a config, and which jobs it would have",
		Long: `check asks the platform what is wrong with a config, checks the specs of its jobs,
and lists the jobs that it would have if it were enabled. Nothing connects to the
vendor.

Exit codes: 0 nothing is wrong, 1 something is.`,
		Args:              arguments("CONFIG"),
		ValidArgsFunction: i.completeIntegrations,
		RunE: func(cmd *cobra.Command, args []string) error {
			checked, err := i.api.Integrations.CheckIntegration(cmd.Context(), &jobsv1.CheckIntegrationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			var errs []error
			for _, finding := range checked.GetFindings() {
				errs = append(errs, fmt.Errorf("config %s: %s", clean(args[0]), clean(finding)))
			}
			return errors.Join(append(errs, i.emit(checked, func(w io.Writer) error { return writeChecked(w, args[0], checked) }))...)
		},
	}
}

func writeChecked(w io.Writer, id string, c *jobsv1.CheckIntegrationResponse) error {
	lines := &lineWriter{w: w}
	for _, j := range c.GetJobs() {
		lines.printf("+ %s  %s", clean(j.GetId()), api.ModeOf(j))
	}
	for _, other := range c.GetPartOfJobIds() {
		lines.printf("= part of %s", clean(other))
	}
	for _, note := range c.GetNotes() {
		lines.printf("! %s", clean(note))
	}
	if len(c.GetFindings()) == 0 {
		lines.printf("Nothing is wrong with config %s.", clean(id))
	}
	return lines.err
}
