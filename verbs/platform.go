package verbs

import (
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// PlatformVerbs are the verbs of what the platform has: configs and organizations.
func PlatformVerbs() []*Verb {
	return []*Verb{EnableIntegration, DisableIntegration, PlanTeardown, StartTeardown, UndoTeardown}
}

// IntegrationVerbs are the verbs of a config.
func IntegrationVerbs() []*Verb { return []*Verb{EnableIntegration, DisableIntegration} }

// OfIntegration is what decides on the verbs of a config.
func OfIntegration(i *jobsv1.Integration) Subject { return Subject{Enabled: i.GetEnabled()} }

// TeardownState is what decides on the verbs of an organization.
type TeardownState struct {
	// Marked says that it is marked as deleted.
	Marked bool
}

// OfTeardown is what decides on the verbs of an organization.
func OfTeardown(t *jobsv1.Teardown) Subject {
	return Subject{Teardown: TeardownState{Marked: t.GetDeleteTime() != nil}}
}

const (
	isMarked  = "it is marked as deleted already"
	notMarked = "it is not marked as deleted"
)

// EnableIntegration has the jobs of a config run.
var EnableIntegration = row(Verb{
	Name: "enable-integration", Command: "integrations enable", Procedure: jobsv1connect.IntegrationServiceEnableIntegrationProcedure,
	Role: RoleOperator, Kind: KindIntegration, Label: "Enable",
	WhyNot: func(s Subject) string {
		if s.Enabled {
			return "it is enabled already"
		}
		return ""
	},
}, func(a Args) *jobsv1.EnableIntegrationRequest { return &jobsv1.EnableIntegrationRequest{Id: a.object()} },
	func(a Args, _ *jobsv1.EnableIntegrationResponse) Done { return ofConfig(a, "enabled") })

// DisableIntegration has the jobs of a config stop.
var DisableIntegration = row(Verb{
	Name: "disable-integration", Command: "integrations disable", Procedure: jobsv1connect.IntegrationServiceDisableIntegrationProcedure,
	Role: RoleOperator, Kind: KindIntegration, Label: "Disable",
	WhyNot: func(s Subject) string {
		if !s.Enabled {
			return "it is disabled already"
		}
		return ""
	},
}, func(a Args) *jobsv1.DisableIntegrationRequest {
	return &jobsv1.DisableIntegrationRequest{Id: a.object()}
},
	func(a Args, _ *jobsv1.DisableIntegrationResponse) Done { return ofConfig(a, "disabled") })

func ofConfig(a Args, result string) Done {
	return Done{Text: "Config " + a.object() + " is " + result, Result: result}
}

// PlanTeardown has a worker tell what a teardown would remove. Its run changes nothing.
var PlanTeardown = row(Verb{
	Name: "plan-teardown", Command: "teardown plan", Procedure: jobsv1connect.TeardownServicePlanTeardownProcedure,
	Role: RoleOperator, Kind: KindOrganization,
}, func(a Args) *jobsv1.PlanTeardownRequest {
	return &jobsv1.PlanTeardownRequest{Organization: a.object()}
},
	func(a Args, answer *jobsv1.PlanTeardownResponse) Done {
		return Done{Text: "The teardown of organization " + a.object() + " is planned", Result: "planned", Run: answer.GetRunName()}
	})

// StartTeardown marks an organization as deleted. The rest of its question is what a plan tells.
var StartTeardown = row(Verb{
	Name: "start-teardown", Command: "teardown start", Procedure: jobsv1connect.TeardownServiceStartTeardownProcedure,
	Role: RoleAdmin, Kind: KindOrganization, Question: "Delete organization %s?",
	WhyNot: func(s Subject) string {
		if s.Teardown.Marked {
			return isMarked
		}
		return ""
	},
}, func(a Args) *jobsv1.StartTeardownRequest {
	return &jobsv1.StartTeardownRequest{Organization: a.object()}
},
	func(_ Args, answer *jobsv1.StartTeardownResponse) Done {
		result := "marked as deleted"
		if purge := answer.GetTeardown().GetPurgeTime(); purge != nil {
			result += ", with its purge from " + utc(purge) + " on"
		}
		return ofOrganization(answer.GetTeardown(), result, answer.GetAlreadyMarked(), isMarked)
	})

// UndoTeardown takes the mark of a deleted organization away.
var UndoTeardown = row(Verb{
	Name: "undo-teardown", Command: "teardown undo", Procedure: jobsv1connect.TeardownServiceUndoTeardownProcedure,
	Role: RoleAdmin, Kind: KindOrganization,
	WhyNot: func(s Subject) string {
		if !s.Teardown.Marked {
			return notMarked
		}
		return ""
	},
}, func(a Args) *jobsv1.UndoTeardownRequest {
	return &jobsv1.UndoTeardownRequest{Organization: a.object()}
},
	func(_ Args, answer *jobsv1.UndoTeardownResponse) Done {
		return ofOrganization(answer.GetTeardown(), "not deleted any more", answer.GetNotMarked(), notMarked)
	})

// ofOrganization is what was done to an organization; why is the reason if nothing was.
func ofOrganization(t *jobsv1.Teardown, result string, same bool, why string) Done {
	if same {
		result = noted(unchanged, why)
	}
	return Done{Text: "Organization " + t.GetOrganization() + ": " + result, Result: result, Unchanged: same}
}
