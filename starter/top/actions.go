package top

import (
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// action is a verb that the user is asked about before it is done.
type action struct {
	verb *verbs.Verb
	args verbs.Args
}

func (a *action) question() string { return a.verb.Ask(a.args) }

// keys are the verbs of a key in a pane: it does the first that applies.
var keys = map[pane]map[string][]*verbs.Verb{
	paneJobs: {
		"p": {verbs.ResumeJob, verbs.PauseJob},
		"r": {verbs.RunJob},
		"c": {verbs.StopJob},
	},
	paneQueues: {
		"p": {verbs.ResumeQueue, verbs.PauseQueue},
	},
}

// keyAction is what a key does to a row; nil if nothing.
func keyAction(key string, p pane, r row) *action {
	for _, v := range keys[p][key] {
		if v.Applies(r.of) {
			return &action{v, verbs.To(r.name)}
		}
	}
	if p != paneAlerts || key != "enter" || len(r.alert.GetActions()) == 0 {
		return nil
	}
	v := verbs.OfAction(r.alert.GetActions()[0])
	if v == nil || v.Times { // The screen asks for no times.
		return nil
	}
	return &action{v, verbs.To(r.name)}
}

// whyNot is why a key does nothing to a row, "" if it is no key of the pane.
func whyNot(key string, p pane, r row) string {
	some := keys[p][key]
	if len(some) == 0 {
		return ""
	}
	return r.name + ": " + some[len(some)-1].WhyNot(r.of)
}

// errorText is the text of an error of the API without its code.
func errorText(err error) string {
	if failed, ok := errors.AsType[*connect.Error](err); ok {
		return failed.Message()
	}
	return err.Error()
}
