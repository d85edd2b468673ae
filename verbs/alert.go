package verbs

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// alertVerbs are those of silences.
func alertVerbs() []*Verb { return []*Verb{CreateSilence, DeleteSilence} }

// CreateSilence keeps the watchdog from telling about alerts until Args.End. Its name is the
// object of the alerts.
var CreateSilence = row(Verb{
	Name: "create-silence", Command: "alerts silence", Procedure: jobsv1connect.AlertServiceCreateSilenceProcedure, Role: RoleOperator,
	Kind: KindSilence, Label: "Silence", Times: true,
}, func(a Args) *jobsv1.CreateSilenceRequest {
	return &jobsv1.CreateSilenceRequest{Silence: &jobsv1.Silence{
		Rule: a.Rule, Object: a.object(), Reason: a.Reason, EndTime: timestamppb.New(a.End),
	}}
}, func(_ Args, answer *jobsv1.CreateSilenceResponse) Done {
	s := answer.GetSilence()
	return Done{Text: "Silence " + s.GetName() + " holds until " + s.GetEndTime().AsTime().UTC().Format("2006-01-02 15:04 UTC"), Result: "silenced"}
})

// DeleteSilence ends a silence.
var DeleteSilence = row(Verb{
	Name: "delete-silence", Command: "alerts unsilence", Procedure: jobsv1connect.AlertServiceDeleteSilenceProcedure, Role: RoleOperator,
	Kind: KindSilence, Label: "End silence",
}, func(a Args) *jobsv1.DeleteSilenceRequest { return &jobsv1.DeleteSilenceRequest{Name: a.object()} },
	func(a Args, _ *jobsv1.DeleteSilenceResponse) Done {
		return Done{Text: "Silence " + a.object() + " has ended", Result: "ended"}
	})
