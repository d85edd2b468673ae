package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const loadsHelp = `loads shows the loads of locations into their InfluxDB mirrors: how many prepared
messages wait and since when, the points a second, whether the mirror is up, and the
messages that went to quarantine or were too old to store.

The numbers of waiting messages come from the consumers of the stream and need no
loader. The others are the loader's last report, every three seconds. A mirror that
failed is down: the loader waits, then tries it with a small write. Below the table
are the server's error and the message that blocks the mirror, if the error is about
one.

loads reads the NATS server, and neither Temporal nor a worker. A load is listed as
long as its consumer exists.`

// loaderSilence is the age of the last report at which a loader counts as stopped: ten
// times the interval of reports.
const loaderSilence = 30 * time.Second

// loadView is a load as it is shown as JSON.
type loadView struct {
	pipeline.Load
	// LagSeconds is the age of the oldest waiting message.
	LagSeconds float64 `json:"lag_seconds"`
	// Loader says that a loader has reported lately.
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
			location := ""
			if len(args) == 1 {
				location = args[0]
			}
			loads, err := findLoads(cmd.Context(), client, location)
			if err != nil {
				return err
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
	cmd.AddCommand(i.loadsSkipCommand())
	return cmd
}

// findLoads lists the loads of a location, or of all if it is empty.
func findLoads(ctx context.Context, client *pipeline.Client, location string) ([]pipeline.Load, error) {
	loads, err := client.Loads(ctx)
	if errors.Is(err, pipeline.ErrNoStream) {
		return nil, fmt.Errorf("there is no stream %s on nats %s: no worker has connected to it yet", pipeline.StreamPrepared, client.Address())
	}
	if err != nil || location == "" {
		return loads, err
	}
	loads = slices.DeleteFunc(loads, func(l pipeline.Load) bool { return l.Location != location })
	if len(loads) == 0 {
		return nil, fmt.Errorf("nothing has been loaded of location %s on nats %s", location, client.Address())
	}
	return loads, nil
}

// loadName is the name of a load in sentences.
func loadName(l pipeline.Load) string {
	return l.Location + "/" + string(l.Operation) + "/" + l.Mirror
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
	line := func(format string, args ...any) {
		if first {
			lines.printf("")
			first = false
		}
		lines.printf(format, args...)
	}
	for _, v := range views {
		name := loadName(v.Load)
		switch b := v.Breaker; {
		case b.Failures == 0:
		case b.State == pipeline.BreakerTrying:
			line("%s", clean(fmt.Sprintf("%s is down since %s, and is being tried: last %s: %s: %s",
				name, i.moment(b.Since), i.moment(b.FailedAt), b.Class, b.Reason)))
		case b.State == pipeline.BreakerClosed:
			line("%s", clean(fmt.Sprintf("%s has failed %d times in a row, last %s: %s: %s", name, b.Failures, i.moment(b.FailedAt), b.Class, b.Reason)))
		default:
			line("%s", i.paint(red, clean(fmt.Sprintf("%s is down since %s, %d failures, next attempt %s: %s: %s",
				name, i.moment(b.Since), b.Failures, i.moment(b.RetryAt), b.Class, b.Reason))))
		}
		if h := v.Breaker.Held; h != nil && v.Waiting > 0 {
			line("%s is blocked by message %d on %s: starter loads skip %s puts it into quarantine", name, h.Sequence, clean(h.Subject), skipArguments(v, views))
		}
		switch {
		case v.UpdatedAt.IsZero():
			line("%s: no loader has reported yet", name)
		case !v.Loader:
			line("%s: no loader since %s", name, i.moment(v.UpdatedAt))
		}
		if v.MaxBytes > 0 {
			line("%s: %s accepts at most %d bytes a write", name, v.Address, v.MaxBytes)
		}
	}
	return lines.err
}

// skipArguments are the arguments of starter loads skip that select one load.
func skipArguments(of loadView, all []loadView) string {
	for _, v := range all {
		if v.Location == of.Location && (v.Operation != of.Operation || v.Mirror != of.Mirror) {
			return fmt.Sprintf("%s --mirror %s --operation %s", of.Location, of.Mirror, of.Operation)
		}
	}
	return of.Location
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
