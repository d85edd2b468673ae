package contract

import (
	"fmt"
	"time"
)

// Binding says which service a bound job's runs go to, and how that came about.
type Binding struct {
	// Service is the name of the service; "" before the first choice.
	Service string `json:"service,omitempty"`
	// Tags are those that the service was chosen for.
	Tags map[string]string `json:"tags,omitempty"`
	// Lost says why the service has to be found again before it gets more work.
	Lost string `json:"lost,omitempty"`
	// Silent says that the service fell silent in the last attempt, for the heartbeat
	// timeout, and NotTaken that it did not take the run in time.
	Silent   bool `json:"silent,omitempty"`
	NotTaken bool `json:"not_taken,omitempty"`
	// Rebinds are the latest changes of the service, oldest first; Rebound counts
	// them all.
	Rebinds []Rebind `json:"rebinds,omitempty"`
	Rebound int      `json:"rebound,omitempty"`
}

// Rebind is a change of the service that a run or a continuous job is bound to.
type Rebind struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason"`
}

// String writes "a → b: reason".
func (r Rebind) String() string { return fmt.Sprintf("%s → %s: %s", r.From, r.To, r.Reason) }
