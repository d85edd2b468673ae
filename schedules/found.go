package schedules

// foundState is what a plan found of a job, and what it makes of it.
type foundState struct {
	JobID   string   `json:"job_id"`
	Action  Action   `json:"action"`
	Version string   `json:"version,omitempty"`
	Fields  []Field  `json:"fields,omitempty"`
	Removes []string `json:"removes,omitempty"`
}

// found is what the plan rests on.
func (p *Plan) found() []foundState {
	found := make([]foundState, len(p.Changes))
	for i := range p.Changes {
		found[i] = p.Changes[i].found()
	}
	return found
}

func (change *Change) found() foundState {
	state := foundState{JobID: change.JobID, Action: change.Action, Version: change.Version, Fields: change.Fields}
	for _, r := range change.replaces {
		state.Removes = append(state.Removes, string(r.resource)+" "+r.version)
	}
	return state
}
