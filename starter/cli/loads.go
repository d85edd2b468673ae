package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

const loadsHelp = `loads shows the loads of locations into their InfluxDB mirrors: how many prepared
messages wait and since when, the points a second, whether the mirror is up, and the
messages that went to quarantine or were too old to store.

The numbers of waiting messages come from the consumers of the stream and need no
loader. The others are the loader's last report, every three seconds. A mirror that
failed is down: the loader waits, then tries it with a small write. A load is refusing
while more than half of its latest points went to quarantine. Below the table
are the server's error and the message that blocks the mirror, if the error is about
one.

loads reads the NATS server, and neither Temporal nor a worker. A load is listed as
long as its consumer exists. A location with messages that no load is for is listed as
its default mirror.`

func (i *invocation) loadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "loads [LOCATION]",
		Short: "Show how far InfluxDB mirrors are behind, and which are down",
		Long:  loadsHelp,
		Args:  arguments("[LOCATION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			location := ""
			if len(args) == 1 {
				location = args[0]
			}
			answer, err := i.listLoads(cmd.Context(), location)
			if err != nil {
				return err
			}
			i.noteEmpty("load", len(answer.GetLoads()))
			return i.emit(answer, func(w io.Writer) error { return i.writeLoads(w, answer.GetLoads()) })
		},
	}
	i.natsFlag(cmd)
	cmd.AddCommand(i.loadsSkipCommand())
	return cmd
}

// listLoads lists the loads of a location, which has to have some, or of all if it is "".
func (i *invocation) listLoads(ctx context.Context, location string) (*jobsv1.ListLoadsResponse, error) {
	answer, err := i.api.Loads.ListLoads(ctx, &jobsv1.ListLoadsRequest{Location: location})
	if answer.GetNote() != "" {
		return nil, errors.New(answer.GetNote())
	}
	if err == nil && location != "" && len(answer.GetLoads()) == 0 {
		err = fmt.Errorf("nothing has been loaded of location %s", location)
	}
	return answer, err
}

// loadName is the name of a load in sentences.
func loadName(l *jobsv1.Load) string {
	return l.GetLocation() + "/" + l.GetFlow() + "/" + l.GetMirror()
}

func (i *invocation) writeLoads(w io.Writer, loads []*jobsv1.Load) error {
	t := newTable("LOCATION", "FLOW", "MIRROR", "STATE", "WAITING", "BEHIND", "POINTS/S", "QUARANTINED", "EXPIRED", "LAST WRITE").
		spare("LAST WRITE", "POINTS/S", "BEHIND", "EXPIRED", "QUARANTINED")
	for _, l := range loads {
		behind := ""
		if l.GetWaiting() > 0 && l.GetOldestTime() != nil {
			behind = span(max(i.Now().Sub(toTime(l.GetOldestTime())), 0))
		}
		t.add(l.GetLocation(), l.GetFlow(), l.GetMirror(), loadStatus(l), fmt.Sprint(l.GetWaiting()), behind,
			fmt.Sprintf("%.0f", l.GetPointsPerSecond()), fmt.Sprint(l.GetQuarantined()), fmt.Sprint(l.GetExpired()), i.when(toTime(l.GetLastWriteTime())))
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
	for _, l := range loads {
		name := loadName(l)
		reason := l.GetErrorClass() + ": " + l.GetErrorMessage()
		switch {
		case l.GetFailures() == 0:
		case l.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_TRYING:
			line("%s", clean(fmt.Sprintf("%s is down since %s, and is being tried: last %s: %s",
				name, i.moment(toTime(l.GetDownTime())), i.moment(toTime(l.GetFailureTime())), reason)))
		case l.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_DOWN:
			line("%s", i.paint(red, clean(fmt.Sprintf("%s is down since %s, %d failures, next attempt %s: %s",
				name, i.moment(toTime(l.GetDownTime())), l.GetFailures(), i.moment(toTime(l.GetNextAttemptTime())), reason))))
		default:
			line("%s", clean(fmt.Sprintf("%s has failed %d times in a row, last %s: %s", name, l.GetFailures(), i.moment(toTime(l.GetFailureTime())), reason)))
		}
		if verbs.SkipHeldMessage.Applies(verbs.OfLoad(l)) {
			line("%s is blocked by message %d on %s: starter loads skip %s puts it into quarantine", name, l.GetHeldSequence(), clean(l.GetHeldSubject()), skipArguments(l, loads))
		}
		if l.GetRefusingTime() != nil {
			line("%s", i.paint(red, clean(fmt.Sprintf("%s refuses most points since %s: %s", name, i.moment(toTime(l.GetRefusingTime())), api.Refusals(l)))))
		}
		switch {
		case l.GetUpdateTime() == nil:
			line("%s: no loader has reported yet", name)
		case !l.GetLoaderReports():
			line("%s: no loader since %s", name, i.moment(toTime(l.GetUpdateTime())))
		}
		if l.GetMaxBytes() > 0 {
			line("%s: %s accepts at most %d bytes a write", name, l.GetAddress(), l.GetMaxBytes())
		}
	}
	return lines.err
}

// skipArguments are the arguments of starter loads skip that select one load.
func skipArguments(of *jobsv1.Load, all []*jobsv1.Load) string {
	for _, l := range all {
		if l.GetLocation() == of.GetLocation() && (l.GetFlow() != of.GetFlow() || l.GetMirror() != of.GetMirror()) {
			return fmt.Sprintf("%s --mirror %s --operation %s", of.GetLocation(), of.GetMirror(), of.GetFlow())
		}
	}
	return of.GetLocation()
}

// loadStatus is the status of a load in tables.
func loadStatus(l *jobsv1.Load) string {
	return strings.ReplaceAll(api.Word(l.GetStatus()), "_", " ")
}
