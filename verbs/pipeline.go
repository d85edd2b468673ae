package verbs

import (
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// LoadState is what decides on the verb of a load.
type LoadState struct {
	// Held says that a message blocks it.
	Held bool
}

// OfLoad is what decides on the verb of a load.
func OfLoad(l *jobsv1.Load) Subject {
	return Subject{Load: LoadState{Held: l.GetHeldSequence() > 0}}
}

// LoadVerbs are the verbs of loads.
func LoadVerbs() []*Verb { return []*Verb{SkipHeldMessage} }

// QuarantineVerbs are the verbs of items of quarantine. Whoever shows an item shows that they
// apply.
func QuarantineVerbs() []*Verb { return []*Verb{ReplayQuarantineItems, DropQuarantineItems} }

// SkipHeldMessage puts the message that blocks a location into quarantine. Its name is that of a
// load, LOCATION/FLOW/MIRROR.
var SkipHeldMessage = row(Verb{
	Name: "skip-held-message", Command: "loads skip", Procedure: jobsv1connect.LoadServiceSkipHeldMessageProcedure, Role: RoleOperator,
	Kind: KindLoad, Label: "Skip held message…", Question: "Put the message that blocks %s into quarantine?",
	Action: jobsv1.AlertAction_ALERT_ACTION_SKIP_HELD_MESSAGE,
	WhyNot: func(s Subject) string {
		if !s.Load.Held {
			return "no message blocks it"
		}
		return ""
	},
}, func(a Args) *jobsv1.SkipHeldMessageRequest {
	location, rest, _ := strings.Cut(strings.Join(a.Names, "/"), "/")
	flow, mirror, _ := strings.Cut(rest, "/")
	return &jobsv1.SkipHeldMessageRequest{Location: location, Flow: flow, Mirror: mirror}
}, func(_ Args, answer *jobsv1.SkipHeldMessageResponse) Done {
	result := fmt.Sprintf("message %d goes into quarantine within a minute", answer.GetSequence())
	return Done{Text: "M" + result[1:], Result: result}
})

// ReplayQuarantineItems publishes items of quarantine again.
var ReplayQuarantineItems = row(Verb{
	Name: "replay", Command: "quarantine replay", Procedure: jobsv1connect.QuarantineServiceReplayQuarantineItemsProcedure, Role: RoleOperator,
	Kind: KindQuarantine, Label: "Replay…", Previews: true,
}, func(a Args) *jobsv1.ReplayQuarantineItemsRequest {
	return &jobsv1.ReplayQuarantineItemsRequest{Ids: a.Sequences, Filter: a.Filter, Force: !a.Preview}
}, func(a Args, answer *jobsv1.ReplayQuarantineItemsResponse) Done {
	items := plantext.Counted(int(answer.GetReplayCount()), "item", "items")
	done := Done{Text: items + " replayed", Result: "replayed"}
	if a.Preview {
		done = Done{Text: "Publish " + items + " again?"}
	}
	for _, left := range answer.GetLeft() {
		done.Names = append(done.Names, fmt.Sprintf("%d stays: %s", left.GetId(), left.GetNotReplayable()))
	}
	return done
})

// DropQuarantineItems removes items of quarantine for good.
var DropQuarantineItems = row(Verb{
	Name: "drop", Command: "quarantine drop", Procedure: jobsv1connect.QuarantineServiceDropQuarantineItemsProcedure, Role: RoleAdmin,
	Kind: KindQuarantine, Label: "Drop…", Previews: true,
}, func(a Args) *jobsv1.DropQuarantineItemsRequest {
	return &jobsv1.DropQuarantineItemsRequest{Ids: a.Sequences, Filter: a.Filter, Force: !a.Preview}
}, func(a Args, answer *jobsv1.DropQuarantineItemsResponse) Done {
	items := plantext.Counted(int(answer.GetDropCount()), "item", "items")
	if a.Preview {
		return Done{Text: "Remove " + items + " for good?"}
	}
	return Done{Text: items + " dropped", Result: "dropped"}
})
