package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const loadsHelp = `loads shows how the loads of locations into their InfluxDB mirrors are doing: how
many prepared messages wait and since when, the points a second, whether a mirror
is written to, and what went to quarantine or was too old to store.

What waits comes from the stream's own consumers and is right without a loader;
all else is what the loader told last, every three seconds. A mirror that failed
is down: it is left alone for a while, then tried with a little. Below the table
stands why, in the server's words.

It asks the NATS server, and neither Temporal nor a worker. A load is listed as long as its consumer exists.`

// loaderSilence is how long a loader may be silent before it counts as gone: ten
// times as long as it takes between two reports.
const loaderSilence = 30 * time.Second

// loadView is a load as it is shown as JSON.
type loadView struct {
	pipeline.Load
	// LagSeconds is how long the first message that waits has been in the stream.
	LagSeconds float64 `json:"lag_seconds"`
	// Loader tells whether a loader has reported lately.
	Loader bool `json:"loader"`
}

func (i *invocation) loadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "loads [LOCATION]",
		Short: "Show how far InfluxDB mirrors are behind, and which are down",
		Long:  loadsHelp,
		Args:  arguments("[LOCATION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := i.connectPipeline(cmd.Context())
			if err != nil {
				return err
			}
			loads, err := client.Loads(cmd.Context())
			if errors.Is(err, pipeline.ErrNoStream) {
				return fmt.Errorf("there is no stream %s on nats %s: no worker has been there", pipeline.StreamPrepared, client.Address())
			}
			if err != nil {
				return err
			}
			if len(args) == 1 {
				loads = slices.DeleteFunc(loads, func(l pipeline.Load) bool { return l.Location != args[0] })
				if len(loads) == 0 {
					return fmt.Errorf("nothing has been loaded of location %s on nats %s", args[0], client.Address())
				}
			}
			views := make([]loadView, len(loads))
			for n, l := range loads {
				views[n] = i.loadView(l)
			}
			i.noteEmpty("load", len(views))
			return i.emit(list(views), func(w io.Writer) error { return i.writeLoads(w, views) })
		},
	}
	i.natsFlag(cmd)
	return cmd
}

func (i *invocation) loadView(l pipeline.Load) loadView {
	v := loadView{Load: l, Loader: i.Now().Sub(l.UpdatedAt) < loaderSilence}
	if !l.Oldest.IsZero() {
		v.LagSeconds = max(i.Now().Sub(l.Oldest).Seconds(), 0)
	}
	if !v.Loader {
		v.PointsPerSecond = 0
	}
	return v
}

func (i *invocation) writeLoads(w io.Writer, views []loadView) error {
	t := newTable("LOCATION", "FLOW", "MIRROR", "STATE", "WAITING", "BEHIND", "POINTS/S", "QUARANTINED", "EXPIRED", "LAST WRITE")
	for _, v := range views {
		behind := ""
		if v.Waiting > 0 && !v.Oldest.IsZero() {
			behind = span(time.Duration(v.LagSeconds * float64(time.Second)))
		}
		t.add(v.Location, string(v.Operation), v.Mirror, loadStatus(v), fmt.Sprint(v.Waiting), behind,
			fmt.Sprintf("%.0f", v.PointsPerSecond), fmt.Sprint(v.Quarantined), fmt.Sprint(v.Expired), i.when(v.LastWrite))
	}
	if err := t.write(w); err != nil {
		return err
	}
	lines := &lineWriter{w: w}
	first := true
	say := func(format string, args ...any) {
		if first {
			lines.printf("")
			first = false
		}
		lines.printf(format, args...)
	}
	for _, v := range views {
		name := v.Location + "/" + string(v.Operation) + "/" + v.Mirror
		switch b := v.Breaker; {
		case b.Failures == 0:
		case b.State == pipeline.BreakerTrying:
			say("%s", clean(fmt.Sprintf("%s is down since %s, and is tried with what comes: last %s: %s: %s",
				name, i.moment(b.Since), i.moment(b.FailedAt), b.Class, b.Reason)))
		case b.State == pipeline.BreakerClosed:
			say("%s", clean(fmt.Sprintf("%s has failed %d times in a row, last %s: %s: %s", name, b.Failures, i.moment(b.FailedAt), b.Class, b.Reason)))
		default:
			say("%s", i.paint(red, clean(fmt.Sprintf("%s is down since %s, %d failures, next try %s: %s: %s",
				name, i.moment(b.Since), b.Failures, i.moment(b.RetryAt), b.Class, b.Reason))))
		}
		switch {
		case v.UpdatedAt.IsZero():
			say("%s: no loader has told anything yet", name)
		case !v.Loader:
			say("%s: no loader since %s", name, i.moment(v.UpdatedAt))
		}
		if v.MaxBytes > 0 {
			say("%s: %s takes at most %d bytes a write", name, v.Address, v.MaxBytes)
		}
	}
	return lines.err
}

func loadStatus(v loadView) string {
	switch {
	case v.Breaker.State == pipeline.BreakerOpen:
		return "down"
	case v.Breaker.State == pipeline.BreakerTrying:
		return "trying"
	case !v.Loader:
		return "no loader"
	case v.Breaker.Failures > 0:
		return "failing"
	}
	return "ok"
}
