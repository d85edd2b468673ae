package watchdog

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Outcome is what became of a message to a receiver.
type Outcome struct {
	Receiver string `json:"receiver"`
	// Error is empty if the receiver has taken the message.
	Error string `json:"error,omitempty"`
}

// Try sends a message of no alert to all receivers, whatever alerts they take.
func (f File) Try(ctx context.Context) []Outcome {
	outcomes := make([]Outcome, len(f.Routes))
	var wait sync.WaitGroup
	for n, route := range f.Routes {
		outcomes[n].Receiver = route.Name
		wait.Go(func() {
			m := messageOf([]Notice{{
				ID: rand.Text(), Phase: alerts.Firing, Alert: "test/" + route.Name, Rule: "test", Object: route.Name, Severity: "warning",
				Text: "This is a test of receiver " + route.Name + ". Nothing is wrong.", FireTime: time.Now().UTC(),
			}})
			if err := route.Receiver.Send(ctx, m); err != nil {
				outcomes[n].Error = err.Error()
			}
		})
	}
	wait.Wait()
	return outcomes
}
