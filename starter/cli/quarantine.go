package cli

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
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
	filter pipeline.ItemFilter
	all    bool
}

func (f *itemFlags) register(i *invocation, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(choose(&f.filter.Stage, pipeline.Stages()...), "stage", "only items of this stage: "+strings.Join(words(pipeline.Stages()), ", "))
	flags.Var(choose(&f.filter.Operation, pipeline.Operations()...), "operation", "only items of this operation: "+strings.Join(words(pipeline.Operations()), ", "))
	flags.Var(nameValue{&f.filter.Organization}, "organization", "only items of this organization; of the stage change by its id")
	flags.Var(nameValue{&f.filter.Location}, "location", "only items of this location (stage load)")
	flags.Var(nameValue{&f.filter.Class}, "class", "only items of this class, such as RefusedPoint")
	flags.Var(sinceValue{&f.filter.Since, i.Now}, "since", "only items put into quarantine since this time, or this long ago")
	completeFixed(cmd, "stage", words(pipeline.Stages())...)
	completeFixed(cmd, "operation", words(pipeline.Operations())...)
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

// itemView is an item as JSON.
type itemView struct {
	ID             uint64             `json:"id"`
	Quarantined    time.Time          `json:"quarantined_at"`
	Stage          pipeline.Stage     `json:"stage"`
	Operation      pipeline.Operation `json:"operation"`
	Name           string             `json:"name"`
	Class          string             `json:"class"`
	Reason         string             `json:"reason"`
	Job            string             `json:"job"`
	Target         string             `json:"target,omitempty"`
	OriginSubject  string             `json:"origin_subject,omitempty"`
	OriginSequence uint64             `json:"origin_sequence,omitempty"`
	Bytes          int                `json:"bytes"`
	Cut            bool               `json:"cut,omitempty"`
	Replayable     bool               `json:"replayable"`
	// Body is a body of text; BodyBase64 is any other.
	Body       string `json:"body,omitempty"`
	BodyBase64 string `json:"body_base64,omitempty"`
}

func viewOfItem(item pipeline.Item) itemView {
	view := itemView{
		ID: item.ID, Quarantined: item.Time, Stage: item.Stage, Operation: item.Operation, Name: item.Name,
		Class: item.Class, Reason: item.Reason, Job: item.Job, Target: item.Target,
		OriginSubject: item.OriginSubject, OriginSequence: item.OriginSequence,
		Bytes: item.Size, Cut: item.Kept < item.Size, Replayable: item.Replayable() == nil,
	}
	if utf8.Valid(item.Body) {
		view.Body = string(item.Body)
	} else {
		view.BodyBase64 = base64.StdEncoding.EncodeToString(item.Body)
	}
	return view
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
				return i.summarizeItems(cmd, flags.filter)
			}
			return i.listItems(cmd, flags.filter, limit, oldest)
		},
	}
	flags.register(i, cmd)
	cmd.Flags().Uint64Var(&flags.filter.Before, "before", 0, "only items with an ID less than this")
	cmd.Flags().IntVar(&limit, "limit", 50, fmt.Sprintf("show at most this many items, up to %d", maxListed))
	cmd.Flags().BoolVar(&oldest, "oldest-first", false, "begin with the oldest")
	cmd.Flags().BoolVar(&summary, "summary", false, "count the items by origin and class")
	return cmd
}

// errEnough ends a list at its limit.
var errEnough = errors.New("enough")

func (i *invocation) listItems(cmd *cobra.Command, filter pipeline.ItemFilter, limit int, oldest bool) error {
	client, err := i.connectPipeline(cmd.Context())
	if err != nil {
		return err
	}
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	var items []pipeline.Item // a ring buffer of the last ones
	found := 0
	err = client.Items(cmd.Context(), filter, func(item pipeline.Item) error {
		if oldest && found == limit {
			found++
			return errEnough
		}
		if len(items) < limit {
			items = append(items, item)
		} else {
			items[found%limit] = item
		}
		if found++; found%5000 == 0 && line.terminal {
			line.show(fmt.Sprintf("%d items so far", found), time.Since(began))
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	line.clear()
	slices.SortFunc(items, func(a, b pipeline.Item) int {
		if oldest {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Compare(b.ID, a.ID)
	})
	views := make([]itemView, len(items))
	for n, item := range items {
		views[n] = viewOfItem(item)
	}
	i.noteEmpty("item", len(views))
	err = i.emit(list(views), func(w io.Writer) error {
		t := newTable("ID", "SINCE", "STAGE", "OPERATION", "NAME", "CLASS", "REASON")
		for _, v := range views {
			t.add(fmt.Sprint(v.ID), i.when(v.Quarantined), string(v.Stage), string(v.Operation), v.Name, v.Class, beginning(v.Reason, 80))
		}
		return t.write(w)
	})
	switch {
	case err != nil:
	case oldest && found > limit:
		i.note("There are more; --since narrows the list, --limit lengthens it, --summary counts.")
	case found > limit:
		i.note("%d more; starter quarantine list --before %d shows the next ones, --summary counts.", found-limit, items[len(items)-1].ID)
	}
	return err
}

// itemGroup counts items of one origin and one class.
type itemGroup struct {
	Stage      pipeline.Stage     `json:"stage"`
	Operation  pipeline.Operation `json:"operation"`
	Name       string             `json:"name"`
	Class      string             `json:"class"`
	Items      int                `json:"items"`
	Replayable int                `json:"replayable"`
	Oldest     time.Time          `json:"oldest"`
	Newest     time.Time          `json:"newest"`
	LatestID   uint64             `json:"latest_id"`
}

func (i *invocation) summarizeItems(cmd *cobra.Command, filter pipeline.ItemFilter) error {
	client, err := i.connectPipeline(cmd.Context())
	if err != nil {
		return err
	}
	type key struct{ stage, operation, name, class string }
	groups := map[key]*itemGroup{}
	err = client.Items(cmd.Context(), filter, func(item pipeline.Item) error {
		k := key{string(item.Stage), string(item.Operation), item.Name, item.Class}
		g := groups[k]
		if g == nil {
			g = &itemGroup{Stage: item.Stage, Operation: item.Operation, Name: item.Name, Class: item.Class, Oldest: item.Time, Newest: item.Time}
			groups[k] = g
		}
		g.Items++
		if item.Replayable() == nil {
			g.Replayable++
		}
		if item.Time.Before(g.Oldest) {
			g.Oldest = item.Time
		}
		if item.Time.After(g.Newest) {
			g.Newest = item.Time
		}
		g.LatestID = item.ID
		return nil
	})
	if err != nil {
		return err
	}
	all := make([]itemGroup, 0, len(groups))
	for _, g := range groups {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b itemGroup) int {
		return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(b.LatestID, a.LatestID))
	})
	return i.emit(all, func(w io.Writer) error {
		t := newTable("STAGE", "OPERATION", "NAME", "CLASS", "ITEMS", "REPLAYABLE", "OLDEST", "NEWEST", "LATEST ID")
		for _, g := range all {
			t.add(string(g.Stage), string(g.Operation), g.Name, g.Class, strconv.Itoa(g.Items), strconv.Itoa(g.Replayable),
				i.when(g.Oldest), i.when(g.Newest), fmt.Sprint(g.LatestID))
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
			client, err := i.connectPipeline(cmd.Context())
			if err != nil {
				return err
			}
			item, err := client.Item(cmd.Context(), ids[0])
			if err != nil {
				return aboutQuarantined(err)
			}
			if bodyOnly {
				_, err := i.Stdout.Write(item.Body)
				return err
			}
			return i.emit(viewOfItem(item), func(w io.Writer) error { return i.writeItem(w, item) })
		},
	}
	cmd.Flags().BoolVar(&bodyOnly, "body", false, "only the body, byte by byte")
	return cmd
}

func (i *invocation) writeItem(w io.Writer, item pipeline.Item) error {
	var s sheet
	s.add("ID", "%d", item.ID)
	s.add("Since", "%s", i.when(item.Time))
	s.add("Stage", "%s", item.Stage)
	s.add("Operation", "%s", item.Operation)
	s.add("Name", "%s", item.Name)
	s.add("Class", "%s", item.Class)
	s.add("Reason", "%s", item.Reason)
	s.add("Job", "%s", item.Job)
	s.add("Refused by", "%s", item.Target)
	s.add("Origin", "%s", item.OriginSubject)
	if item.OriginSequence > 0 {
		s.add("Message", "%d of its stream", item.OriginSequence)
	}
	if item.Kept < item.Size {
		s.add("Body", "%d bytes, of which the first %d are kept", item.Size, item.Kept)
	} else {
		s.add("Body", "%d bytes", item.Size)
	}
	if err := item.Replayable(); err != nil {
		s.add("Replay", "%s", err)
	} else {
		s.add("Replay", "starter quarantine replay %d publishes it on %s again", item.ID, item.OriginSubject)
	}
	if err := s.write(w); err != nil {
		return err
	}
	body := string(item.Body)
	if i.IsTerminal(i.Stdout) {
		body = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return ' '
			}
			return r
		}, body)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", body)
	return err
}

// itemIDs reads numbers of items.
func itemIDs(cmd *cobra.Command, args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for n, text := range args {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil || id == 0 {
			return nil, misuse(cmd, "%q is not the ID of an item: IDs are numbers", text)
		}
		ids[n] = id
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// aboutQuarantined adds what to do to an error about an item that does not exist.
func aboutQuarantined(err error) error {
	if errors.Is(err, pipeline.ErrNoItem) {
		return fmt.Errorf("%w; starter quarantine list shows the items", err)
	}
	return err
}

// beginning is the first n characters of a text.
func beginning(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
