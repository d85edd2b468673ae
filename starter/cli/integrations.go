package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect/v2"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func (i *invocation) integrationsCommand() *cobra.Command {
	cmd := group("integrations", "List, check and switch integration configs of the platform",
		i.integrationsListCommand(), i.integrationsDescribeCommand(), i.integrationsCheckCommand(),
		i.integrationsEnableCommand(), i.integrationsDisableCommand())
	cmd.Long = fmt.Sprintf(`integrations shows the integration configs of the platform, and switches them on and
off. A job of type ReconcileJobs makes and removes their jobs within seconds.

%s and %s name the Platform API.`, platform.EnvURL, platform.EnvToken)
	return cmd
}

// platformAPI is a client of the Platform API.
func (i *invocation) platformAPI() (*platform.Client, error) {
	config, err := platform.ConfigFromEnv(i.Getenv)
	if err != nil {
		return nil, err
	}
	return platform.New(config, i.patient)
}

// integration is a config as it is shown.
type integration struct {
	ID             string     `json:"id"`
	Type           string     `json:"type"`
	Name           string     `json:"name"`
	OrganizationID string     `json:"organization_id"`
	Organization   string     `json:"organization,omitempty"` // slug
	StationID      string     `json:"station_id,omitempty"`
	Station        string     `json:"station,omitempty"` // slug
	Mode           string     `json:"operation_mode"`
	Enabled        bool       `json:"enabled"`
	Version        int64      `json:"version"`
	Observed       int64      `json:"observed_version"`
	Conditions     conditions `json:"conditions"`
}

// conditions are those of a config, by type.
type conditions []condition

type condition struct {
	Type    string `json:"type"`
	Status  bool   `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// slugNames are the slugs of organizations and stations, by id.
type slugNames map[string]string

func newIntegration(c *platformv1.IntegrationConfig, slugs slugNames) integration {
	shown := integration{
		ID: c.GetId(), Type: c.GetTypeId(), Name: c.GetName(), OrganizationID: c.GetOrganizationId(), Organization: slugs[c.GetOrganizationId()],
		StationID: c.GetStationId(), Station: slugs[c.GetStationId()],
		Mode:    strings.ToLower(strings.TrimPrefix(c.GetOperationMode().String(), "OPERATION_MODE_")),
		Enabled: c.GetEnabled(), Version: c.GetVersion(), Observed: c.GetStatus().GetObservedVersion(), Conditions: conditions{},
	}
	for _, found := range c.GetStatus().GetConditions() {
		shown.Conditions = append(shown.Conditions, condition{
			found.GetType(), found.GetStatus() == platformv1.ConditionStatus_CONDITION_STATUS_TRUE, found.GetReason(), found.GetMessage(),
		})
	}
	return shown
}

// is says that a condition holds.
func (c conditions) is(conditionType string) bool {
	for _, one := range c {
		if one.Type == conditionType {
			return one.Status
		}
	}
	return false
}

// state is one word about a config.
func (s integration) state() string {
	switch {
	case !s.Enabled:
		return "disabled"
	case s.Conditions.is(orchestrate.ConditionDegraded):
		return "degraded"
	case s.Conditions.is(orchestrate.ConditionReady):
		return "ready"
	}
	return "not ready"
}

// belongs is the organization of a config, and its station.
func (s integration) belongs() string {
	name := s.Organization
	if name == "" {
		name = s.OrganizationID
	}
	switch {
	case s.Station != "":
		name += "/" + s.Station
	case s.StationID != "":
		name += "/" + s.StationID
	}
	return name
}

func readNames(ctx context.Context, api *platform.Client) (slugNames, error) {
	slugs := slugNames{}
	err := platform.Pages(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := api.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageToken: token})
		for _, o := range page.GetOrganizations() {
			slugs[o.GetId()] = o.GetSlug()
		}
		return page.GetNextPageToken(), err
	})
	if err == nil {
		err = platform.Pages(ctx, func(ctx context.Context, token string) (string, error) {
			page, err := api.Metadata.ListStations(ctx, &platformv1.ListStationsRequest{PageToken: token})
			for _, s := range page.GetStations() {
				slugs[s.GetId()] = s.GetSlug()
			}
			return page.GetNextPageToken(), err
		})
	}
	return slugs, platform.Explain(err)
}

// configs lists configs, in the order of ids.
func configs(ctx context.Context, api *platform.Client, request *platformv1.ListIntegrationConfigsRequest) ([]*platformv1.IntegrationConfig, error) {
	var list []*platformv1.IntegrationConfig
	err := platform.Pages(ctx, func(ctx context.Context, token string) (string, error) {
		request.PageToken = token
		page, err := api.Integrations.ListIntegrationConfigs(ctx, request)
		list = append(list, page.GetIntegrationConfigs()...)
		return page.GetNextPageToken(), err
	})
	return list, platform.Explain(err)
}

func getConfig(ctx context.Context, api *platform.Client, id string) (*platformv1.IntegrationConfig, error) {
	answer, err := api.Integrations.GetIntegrationConfig(ctx, &platformv1.GetIntegrationConfigRequest{Id: id})
	return answer.GetIntegrationConfig(), aboutConfig(id, err)
}

func aboutConfig(id string, err error) error {
	if connect.CodeOf(err) == connect.CodeNotFound && err != nil {
		return fmt.Errorf("there is no integration config %s; starter integrations list lists those there are", clean(id))
	}
	return platform.Explain(err)
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
			api, err := i.platformAPI()
			if err != nil {
				return err
			}
			slugs, err := readNames(cmd.Context(), api)
			if err != nil {
				return err
			}
			list, err := configs(cmd.Context(), api, &platformv1.ListIntegrationConfigsRequest{})
			if err != nil {
				return err
			}
			shown := []integration{}
			for _, c := range list {
				one := newIntegration(c, slugs)
				if organization == "" || organization == one.Organization || organization == one.OrganizationID {
					shown = append(shown, one)
				}
			}
			return i.emit(shown, func(w io.Writer) error { return i.writeIntegrations(w, shown) })
		},
	}
	cmd.Flags().StringVar(&organization, "organization", "", "only those of the organization with this slug or id")
	return cmd
}

func (i *invocation) writeIntegrations(w io.Writer, list []integration) error {
	if i.noteEmpty("integration configs", len(list)) {
		return nil
	}
	t := newTable("CONFIG", "TYPE", "BELONGS TO", "MODE", "STATE")
	for _, c := range list {
		t.add(c.ID, c.Type, c.belongs(), c.Mode, c.state())
	}
	return t.write(w)
}

// checkedConfig is what integrations check shows, as JSON.
type checkedConfig struct {
	Config   string   `json:"config"`
	Findings []string `json:"findings"`
	// Notes are what keeps a job from running for now.
	Notes  []string     `json:"notes"`
	Jobs   []plannedJob `json:"jobs"`
	PartOf []plannedJob `json:"part_of"`
}

type plannedJob struct {
	ID   string   `json:"id"`
	Type string   `json:"type"`
	Mode job.Mode `json:"mode,omitempty"`
}

// check says what is wrong with a config, and which jobs it would have.
func (i *invocation) check(ctx context.Context, api *platform.Client, id string) (*checkedConfig, error) {
	config, err := getConfig(ctx, api, id)
	if err != nil {
		return nil, err
	}
	answer, err := api.Integrations.CheckIntegrationConfig(ctx, &platformv1.CheckIntegrationConfigRequest{IntegrationConfig: config})
	if err != nil {
		return nil, platform.Explain(err)
	}
	checked := &checkedConfig{Config: id, Findings: []string{}, Notes: []string{}, Jobs: []plannedJob{}, PartOf: []plannedJob{}}
	for _, f := range answer.GetFindings() {
		checked.Findings = append(checked.Findings, f.GetField()+": "+f.GetMessage())
	}
	if len(checked.Findings) > 0 {
		return checked, nil
	}
	in, err := orchestrate.ReadWith(ctx, api, config, answer.GetRegistrations())
	if err != nil {
		return nil, err
	}
	plan := orchestrate.NewPlanner(i.Types...).Plan(in)
	for _, problem := range plan.Problems {
		if problem.Reason == orchestrate.ReasonInvalid {
			checked.Findings = append(checked.Findings, problem.Message)
		} else {
			checked.Notes = append(checked.Notes, problem.Message)
		}
	}
	for _, left := range plan.LeftOut {
		checked.Notes = append(checked.Notes, left.String())
	}
	for _, j := range plan.Jobs {
		checked.Jobs = append(checked.Jobs, plannedJob{j.ID, j.Type, j.Mode()})
	}
	for _, joined := range plan.Joined {
		checked.PartOf = append(checked.PartOf, plannedJob{ID: joined.JobID(), Type: joined.JobType})
	}
	return checked, nil
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
			api, err := i.platformAPI()
			if err != nil {
				return err
			}
			checked, err := i.check(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			shown := i.emit(checked, func(w io.Writer) error { return writeChecked(w, checked) })
			return errors.Join(checked.verdict(), shown)
		},
	}
}

// verdict is the error of what is wrong.
func (c *checkedConfig) verdict() error {
	var errs []error
	for _, finding := range c.Findings {
		errs = append(errs, fmt.Errorf("config %s: %s", clean(c.Config), clean(finding)))
	}
	return errors.Join(errs...)
}

func writeChecked(w io.Writer, c *checkedConfig) error {
	lines := &lineWriter{w: w}
	for _, j := range c.Jobs {
		lines.printf("+ %s  %s", clean(j.ID), j.Mode)
	}
	for _, j := range c.PartOf {
		lines.printf("= part of %s", clean(j.ID))
	}
	for _, note := range c.Notes {
		lines.printf("! %s", clean(note))
	}
	if len(c.Findings) == 0 {
		lines.printf("Nothing is wrong with config %s.", clean(c.Config))
	}
	return lines.err
}

func (i *invocation) integrationsEnableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "enable CONFIG",
		Short: "Switch a config on, unless something is wrong with it",
		Long: `enable has the jobs of a config run. A config with which something is wrong stays as
it is; integrations check says what.`,
		Args:              arguments("CONFIG"),
		ValidArgsFunction: i.completeIntegrations,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.platformAPI()
			if err != nil {
				return err
			}
			checked, err := i.check(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			if err := checked.verdict(); err != nil {
				return err
			}
			answer, err := api.Integrations.EnableIntegrationConfig(cmd.Context(), &platformv1.EnableIntegrationConfigRequest{Id: args[0]})
			if err != nil {
				return aboutConfig(args[0], err)
			}
			return i.writeSwitched(answer.GetIntegrationConfig())
		},
	}
}

func (i *invocation) integrationsDisableCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "disable CONFIG",
		Short:             "Switch a config off",
		Long:              `disable has the jobs of a config stop: first extract jobs, then prepare, then load.`,
		Args:              arguments("CONFIG"),
		ValidArgsFunction: i.completeIntegrations,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.platformAPI()
			if err != nil {
				return err
			}
			answer, err := api.Integrations.DisableIntegrationConfig(cmd.Context(), &platformv1.DisableIntegrationConfigRequest{Id: args[0]})
			if err != nil {
				return aboutConfig(args[0], err)
			}
			return i.writeSwitched(answer.GetIntegrationConfig())
		},
	}
}

func (i *invocation) writeSwitched(c *platformv1.IntegrationConfig) error {
	word := "disabled"
	if c.GetEnabled() {
		word = "enabled"
	}
	return i.emit(newIntegration(c, nil), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Config %s is %s.\n", clean(c.GetId()), word)
		return err
	})
}

// completeIntegrations suggests ids of configs.
func (i *invocation) completeIntegrations(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	api, err := i.platformAPI()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := configs(cmd.Context(), api, &platformv1.ListIntegrationConfigsRequest{})
	var ids []string
	for _, c := range list {
		ids = append(ids, c.GetId())
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
