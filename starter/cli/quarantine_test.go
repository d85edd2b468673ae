package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// itemsOf lists items.
func itemsOf(t *testing.T, c console, st *stacktest.Stack, args ...string) []*jobsv1.QuarantineItem {
	t.Helper()
	return answered[jobsv1.ListQuarantineItemsResponse](t, c, onNATS(st, append([]string{"list"}, args...)...)...).GetItems()
}

// itemOf is one item.
func itemOf(t *testing.T, c console, st *stacktest.Stack, id int64) *jobsv1.QuarantineItem {
	t.Helper()
	return answered[jobsv1.GetQuarantineItemResponse](t, c, onNATS(st, "show", fmt.Sprint(id))...).GetItem()
}

// onNATS adds the address of the stack's NATS server to a command line.
func onNATS(st *stacktest.Stack, args ...string) []string {
	return append(append([]string{"quarantine"}, args...), "--nats", st.NATS)
}

// putPoints puts n refused points of a location into quarantine.
func putPoints(t *testing.T, client *pipeline.Client, location, class string, n int) {
	t.Helper()
	var messages []pipeline.Quarantined
	for k := range n {
		messages = append(messages, pipeline.Quarantined{
			Stage: pipeline.StageLoad, Operation: pipeline.OperationLive, Name: location, Class: class, Job: "live_load_influx_v1." + location,
			Reason: "field type conflict", Target: "http://127.0.0.1:8086", Subject: pipeline.PrepSubject("live", location), Sequence: uint64(1_000_000 + k),
			Body: fmt.Appendf(nil, `{"n":%d}`, k),
		})
	}
	_, err := client.Quarantine(t.Context(), messages)
	require.NoError(t, err)
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	var c console // They need no Temporal.
	putPoints(t, client, "shelf", "RefusedPoint", 7)
	putPoints(t, client, "shelf", "BadPoint", 2)
	_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{{
		Stage: pipeline.StageExtract, Operation: "test", Name: "shelf.csi", Class: "BadRecord", Reason: "no record", Job: "e", Body: []byte("<\x00rec\x1b[2J\xff"),
	}})
	require.NoError(t, err)

	items := itemsOf(t, c, st, "--location", "shelf")
	require.Len(t, items, 9)
	require.Greater(t, items[0].GetId(), items[8].GetId(), "the newest first")
	require.Equal(t, "BadPoint", items[0].GetErrorClass())
	require.Empty(t, items[0].GetNotReplayable())
	require.Empty(t, items[0].GetBody())
	oldest := itemsOf(t, c, st, "--location", "shelf", "--oldest-first", "--limit", "3")
	require.Equal(t, []int64{items[8].GetId(), items[7].GetId(), items[6].GetId()}, []int64{oldest[0].GetId(), oldest[1].GetId(), oldest[2].GetId()})
	r := c.run(t.Context(), onNATS(st, "list", "--location", "shelf", "--class", "RefusedPoint", "--limit", "3")...)
	require.Zero(t, r.code)
	require.Equal(t, 4, strings.Count(r.stdout, "\n"), r.stdout)
	require.Regexp(t, `(?m)^ID +SINCE +STAGE +OPERATION +NAME +CLASS +REASON$`, r.stdout)
	before := fmt.Sprintf("--before %d", items[4].GetId())
	require.Contains(t, r.stderr, "4 more; starter quarantine list "+before)
	page := itemsOf(t, c, st, "--location", "shelf", "--class", "RefusedPoint", "--limit", "3", "--before", fmt.Sprint(items[4].GetId()))
	require.Equal(t, items[5].GetId(), page[0].GetId())
	require.Equal(t, "{\n  \"items\": []\n}\n", c.ok(t, onNATS(st, "list", "--location", "nowhere", "-o", "json")...))

	groups := answered[jobsv1.SummarizeQuarantineResponse](t, c, onNATS(st, "list", "--summary", "--location", "shelf")...).GetGroups()
	require.Len(t, groups, 2)
	require.Equal(t, []int64{7, 2}, []int64{groups[0].GetItemCount(), groups[1].GetItemCount()})
	require.EqualValues(t, 7, groups[0].GetReplayableCount())
	groups = answered[jobsv1.SummarizeQuarantineResponse](t, c, onNATS(st, "list", "--summary", "--organization", "shelf", "--stage", "extract", "--operation", "test")...).GetGroups()
	require.Equal(t, []int64{1, 0}, []int64{groups[0].GetItemCount(), groups[0].GetReplayableCount()})

	// One item, with its body as it is.
	id := fmt.Sprint(items[8].GetId())
	shown := itemOf(t, c, st, items[8].GetId())
	require.Equal(t, `{"n":0}`, string(shown.GetBody()))
	require.EqualValues(t, 1_000_000, shown.GetOriginSequence())
	text := c.ok(t, onNATS(st, "show", id)...)
	for _, want := range []string{"RefusedPoint", "field type conflict", "dendra.prep.v1.live.shelf", "1000000 of its stream", "http://127.0.0.1:8086", "\n\n{\"n\":0}\n"} {
		require.Contains(t, text, want)
	}
	bad := itemsOf(t, c, st, "--organization", "shelf")[0]
	badID := fmt.Sprint(bad.GetId())
	require.Contains(t, c.ok(t, onNATS(st, "show", badID)...), "<\x00rec\x1b[2J\xff", "verbatim")
	require.Equal(t, "<\x00rec\x1b[2J\xff", c.ok(t, onNATS(st, "show", badID, "--body")...))
	require.Equal(t, "<\x00rec\x1b[2J\xff", string(itemOf(t, c, st, bad.GetId()).GetBody()))
	terminal := console{terminal: true}
	require.NotContains(t, terminal.ok(t, onNATS(st, "show", badID, "--no-color")...), "\x1b[2J", "a body does not steer the terminal")

	t.Run("replay", func(t *testing.T) { quarantineReplay(t, st, client, items) })
	t.Run("drop", func(t *testing.T) { quarantineDrop(t, st, bad.GetId()) })
}

func quarantineReplay(t *testing.T, st *stacktest.Stack, client *pipeline.Client, items []*jobsv1.QuarantineItem) {
	var c console // They need no Temporal.
	id := fmt.Sprint(items[8].GetId())
	r := c.run(t.Context(), onNATS(st, "replay", id)...)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: there is no terminal to ask on: add --yes to replay 1 item\n", r.stderr)
	no := console{terminal: true, stdin: "n\n"}
	r = no.run(t.Context(), onNATS(st, "replay", "--location", "shelf", "--class", "RefusedPoint")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "Publish 7 items again? [y/N] ")
	require.Contains(t, r.stderr, "nothing was done")

	require.Equal(t, "1 item replayed.\n", c.ok(t, onNATS(st, "replay", id, "--yes")...))
	r = c.run(t.Context(), onNATS(st, "replay", id, "--yes")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "item "+id+": it is not in quarantine; starter quarantine list shows the items")
	replayed := answered[jobsv1.ReplayQuarantineItemsResponse](t, c, onNATS(st, "replay", "--location", "shelf", "--class", "RefusedPoint", "--yes")...)
	require.EqualValues(t, 6, replayed.GetReplayCount())
	require.Zero(t, replayed.GetMissingCount()+replayed.GetLeftCount())
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamPrepared)
	require.NoError(t, err)
	subject := pipeline.PrepSubject("live", "shelf")
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(subject))
	require.NoError(t, err)
	require.EqualValues(t, 7, info.State.Subjects[subject])

	// What is no message is left, and said to be.
	r = c.run(t.Context(), onNATS(st, "replay", "--organization", "shelf", "--yes")...)
	require.Zero(t, r.code)
	require.Contains(t, r.stderr, "1 item cannot be replayed, the first: item ")
	require.Contains(t, r.stderr, "is what a vendor sent and not a message")
	require.Contains(t, r.stderr, "There is nothing to replay.")
	require.Equal(t, "0 items replayed.\n", r.stdout)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r = c.run(ctx, onNATS(st, "replay", "--all", "--yes")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "interrupted")
}

func quarantineDrop(t *testing.T, st *stacktest.Stack, bad int64) {
	var c console // They need no Temporal.
	r := c.run(t.Context(), onNATS(st, "drop", fmt.Sprint(bad), "9999999", "--yes")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "item 9999999: it is not in quarantine")
	require.Contains(t, r.stdout+c.ok(t, onNATS(st, "show", fmt.Sprint(bad))...), "BadRecord", "nothing is dropped then")
	r = c.run(t.Context(), onNATS(st, "replay", fmt.Sprint(bad), "--yes")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "it can only be dropped")
	yes := console{terminal: true, stdin: "y\n"}
	r = yes.run(t.Context(), onNATS(st, "drop", fmt.Sprint(bad))...)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "Remove 1 item for good? [y/N] ")
	require.Equal(t, "1 item dropped.\n", r.stdout)
	require.EqualValues(t, 2, answered[jobsv1.DropQuarantineItemsResponse](t, c, onNATS(st, "drop", "--location", "shelf", "--yes")...).GetDropCount())
	require.Equal(t, "0 items dropped.\n", c.ok(t, onNATS(st, "drop", "--location", "shelf", "--yes")...))
}

func TestQuarantineMisuse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"show"}, "ID is missing (see starter quarantine show --help)"},
		{[]string{"show", "x"}, `"x" is not the ID of an item: IDs are numbers (see starter quarantine show --help)`},
		{[]string{"replay"}, "give ID, or filters such as --class, or --all (see starter quarantine replay --help)"},
		{[]string{"replay", "--all=false", "--yes"}, "give ID, or filters such as --class, or --all (see starter quarantine replay --help)"},
		{[]string{"drop", "--all=false", "--yes"}, "give ID, or filters such as --class, or --all (see starter quarantine drop --help)"},
		{[]string{"drop", "1", "--all"}, "give either ID or --all (see starter quarantine drop --help)"},
		{[]string{"list", "--stage", "loud"}, `invalid argument "loud" for "--stage" flag: it is one of extract, prepare, load, change (see starter quarantine list --help)`},
		{[]string{"list", "--limit", "0"}, "--limit 0 is not from 1 to 10000 (see starter quarantine list --help)"},
		{[]string{"list", "--stage", "load", "--organization", "o"}, "items of the stage load are found by location, not by organization (see starter quarantine list --help)"},
		{[]string{"list", "--nats", "nowhere"}, "the NATS URL (DENDRA_NATS_URL) is not of the form nats://HOST:PORT"},
	} {
		r := console{}.run(t.Context(), append([]string{"quarantine"}, test.args...)...)
		code := 1
		if strings.HasSuffix(test.want, " --help)") {
			code = 2
		}
		require.Equal(t, code, r.code, test.args)
		require.Equal(t, "starter: "+test.want+"\n", r.stderr, test.args)
		require.Empty(t, r.stdout, test.args)
	}
}
