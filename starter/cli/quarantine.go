package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) quarantineCommand() *cobra.Command {
	cmd := group("quarantine", "List, show, replay and drop messages that the data pipeline rejected",
		i.quarantineListCommand(), i.quarantineShowCommand(), i.quarantineReplayCommand(), i.quarantineDropCommand())
	cmd.Long = `quarantine works with the messages that could be neither prepared nor stored. They
stay on the NATS server until someone replays or drops them.`
	i.natsFlag(cmd)
	return cmd
}

// itemFlags are the flags by which items are found.
type itemFlags struct {
	filter itemFilter
	all    bool
}

// itemFilter are the items that the flags say.
type itemFilter struct {
	stage, flow, organization, location, class string

	since  time.Time
	before uint64
}

// Check reports filters that do not go together.
func (f *itemFilter) Check() error { return api.CheckQuarantineFilter(f.message()) }

func (f *itemFlags) register(i *invocation, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(choose(&f.filter.stage, api.Stages()...), "stage", "only items of this stage: "+strings.Join(api.Stages(), ", "))
	flags.Var(choose(&f.filter.flow, api.Flows()...), "operation", "only items of this operation: "+strings.Join(api.Flows(), ", "))
	flags.Var(nameValue{&f.filter.organization}, "organization", "only items of this organization; of the stage change by its id")
	flags.Var(nameValue{&f.filter.location}, "location", "only items of this location (stage load)")
	flags.Var(nameValue{&f.filter.class}, "class", "only items of this class, such as RefusedPoint")
	flags.Var(sinceValue{&f.filter.since, i.Now}, "since", "only items put into quarantine since this time, or this long ago")
	completeFixed(cmd, "stage", api.Stages()...)
	completeFixed(cmd, "operation", api.Flows()...)
}

// given is the name of a filter that was given, or "all"; "" if there is none.
func (f *itemFlags) given(cmd *cobra.Command) string {
	for _, name := range []string{"stage", "operation", "organization", "location", "class", "since"} {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	if f.all { // not --all=false
		return "all"
	}
	return ""
}

// maxListed bounds a list of items, which is held in memory.
const maxListed = 10_000

func (i *invocation) quarantineListCommand() *cobra.Command {
	var flags itemFlags
	var limit int
	var summary, oldest bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the items in quarantine, or count them by class",
		Long: `list shows the items in quarantine, the newest first. To see more than --limit, give
the last ID as --before. --summary counts the items instead.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return misuse(cmd, "--limit %d is not from 1 to %d", limit, maxListed)
			}
			if err := flags.filter.Check(); err != nil {
				return misuse(cmd, "%s", err)
			}
			if summary {
				return i.summarizeItems(cmd, flags.message())
			}
			return i.listItems(cmd, flags.message(), limit, oldest)
		},
	}
	flags.register(i, cmd)
	cmd.Flags().Uint64Var(&flags.filter.before, "before", 0, "only items with an ID less than this")
	cmd.Flags().IntVar(&limit, "limit", 50, fmt.Sprintf("show at most this many items, up to %d", maxListed))
	cmd.Flags().BoolVar(&oldest, "oldest-first", false, "begin with the oldest")
	cmd.Flags().BoolVar(&summary, "summary", false, "count the items by origin and class")
	return cmd
}

// message is the filter of a request.
func (f *itemFlags) message() *jobsv1.QuarantineFilter { return f.filter.message() }

func (f *itemFilter) message() *jobsv1.QuarantineFilter {
	m := &jobsv1.QuarantineFilter{
		Stage: f.stage, Flow: f.flow, Organization: f.organization,
		Location: f.location, ErrorClass: f.class, BeforeId: int64(min(f.before, math.MaxInt64)),
	}
	if !f.since.IsZero() {
		m.StartTime = timestamppb.New(f.since)
	}
	return m
}

func (i *invocation) listItems(cmd *cobra.Command, filter *jobsv1.QuarantineFilter, limit int, oldest bool) error {
	request := &jobsv1.ListQuarantineItemsRequest{Filter: filter, OldestFirst: oldest}
	found := int64(0) // as the first page tells
	list, err := listSome(cmd.Context(), i.api.Quarantine.ListQuarantineItems, request, limit, func(list *jobsv1.ListQuarantineItemsResponse) int {
		found = max(found, list.GetTotalSize())
		return len(list.GetItems())
	})
	if err != nil {
		return err
	}
	list.NextPageToken = "" // Other flags go on.
	items := list.GetItems()[:min(limit, len(list.GetItems()))]
	found = max(found, list.GetTotalSize())
	list.Items, list.TotalSize = items, found
	i.noteEmpty("item", len(items))
	err = i.emit(list, func(w io.Writer) error {
		t := newTable("ID", "SINCE", "STAGE", "OPERATION", "NAME", "CLASS", "REASON").spare("OPERATION", "SINCE", "NAME", "REASON")
		for _, item := range items {
			t.add(fmt.Sprint(item.GetId()), i.when(toTime(item.GetQuarantineTime())), item.GetStage(), item.GetFlow(), item.GetName(),
				item.GetErrorClass(), beginning(item.GetReason(), 80))
		}
		return t.write(w)
	})
	switch more := found - int64(len(items)); {
	case err != nil || more <= 0:
	case oldest:
		i.note("There are more; --since narrows the list, --limit lengthens it, --summary counts.")
	default:
		i.note("%d more; starter quarantine list --before %d shows the next ones, --summary counts.", more, items[len(items)-1].GetId())
	}
	return err
}

func (i *invocation) summarizeItems(cmd *cobra.Command, filter *jobsv1.QuarantineFilter) error {
	answer, err := i.api.Quarantine.SummarizeQuarantine(cmd.Context(), &jobsv1.SummarizeQuarantineRequest{Filter: filter})
	if err != nil {
		return err
	}
	return i.emit(answer, func(w io.Writer) error {
		t := newTable("STAGE", "OPERATION", "NAME", "CLASS", "ITEMS", "REPLAYABLE", "OLDEST", "NEWEST", "LATEST ID")
		for _, g := range answer.GetGroups() {
			t.add(g.GetStage(), g.GetFlow(), g.GetName(), g.GetErrorClass(), fmt.Sprint(g.GetItemCount()), fmt.Sprint(g.GetReplayableCount()),
				i.when(toTime(g.GetOldestTime())), i.when(toTime(g.GetNewestTime())), fmt.Sprint(g.GetLatestId()))
		}
		return t.write(w)
	})
}

func (i *invocation) quarantineShowCommand() *cobra.Command {
	var bodyOnly bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show an item: its reason, its origin and its body",
		Long: `show shows an item with its body. On a terminal, control characters of the body are
shown as spaces.`,
		Args: arguments("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := itemIDs(cmd, args)
			if err != nil {
				return err
			}
			answer, err := i.api.Quarantine.GetQuarantineItem(cmd.Context(), &jobsv1.GetQuarantineItemRequest{Id: ids[0]})
			if err != nil {
				return err
			}
			if bodyOnly {
				_, err := i.Stdout.Write(answer.GetItem().GetBody())
				return err
			}
			return i.emit(answer, func(w io.Writer) error { return i.writeItem(w, answer.GetItem()) })
		},
	}
	cmd.Flags().BoolVar(&bodyOnly, "body", false, "only the body, byte by byte")
	return cmd
}

func (i *invocation) writeItem(w io.Writer, item *jobsv1.QuarantineItem) error {
	var s sheet
	s.add("ID", "%d", item.GetId())
	s.add("Since", "%s", i.when(toTime(item.GetQuarantineTime())))
	s.add("Stage", "%s", item.GetStage())
	s.add("Operation", "%s", item.GetFlow())
	s.add("Name", "%s", item.GetName())
	s.add("Class", "%s", item.GetErrorClass())
	s.add("Reason", "%s", item.GetReason())
	s.add("Job", "%s", item.GetJobId())
	s.add("Refused by", "%s", item.GetTarget())
	s.add("Origin", "%s", item.GetOriginSubject())
	if item.GetOriginSequence() > 0 {
		s.add("Message", "%d of its stream", item.GetOriginSequence())
	}
	if item.GetKeptSize() < item.GetSize() {
		s.add("Body", "%d bytes, of which the first %d are kept", item.GetSize(), item.GetKeptSize())
	} else {
		s.add("Body", "%d bytes", item.GetSize())
	}
	if item.GetNotReplayable() != "" {
		s.add("Replay", "%s", item.GetNotReplayable())
	} else {
		s.add("Replay", "starter quarantine replay %d publishes it on %s again", item.GetId(), item.GetOriginSubject())
	}
	if err := s.write(w); err != nil {
		return err
	}
	if !i.IsTerminal(i.Stdout) {
		w = i.Stdout // Another program reads it as it is.
	}
	_, err := fmt.Fprintf(w, "\n%s\n", item.GetBody())
	return err
}

// itemIDs reads numbers of items.
func itemIDs(cmd *cobra.Command, args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for n, text := range args {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return nil, misuse(cmd, "%q is not the ID of an item: IDs are numbers", text)
		}
		ids[n] = id
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// beginning is the first n characters of a text.
func beginning(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
