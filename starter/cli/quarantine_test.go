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
)

type itemShown struct {
	ID             uint64 `json:"id"`
	Quarantined    string `json:"quarantined_at"`
	Stage          string `json:"stage"`
	Operation      string `json:"operation"`
	Name           string `json:"name"`
	Class          string `json:"class"`
	Reason         string `json:"reason"`
	Job            string `json:"job"`
	Target         string `json:"target"`
	OriginSubject  string `json:"origin_subject"`
	OriginSequence uint64 `json:"origin_sequence"`
	Bytes          int    `json:"bytes"`
	Cut            bool   `json:"cut"`
	Replayable     bool   `json:"replayable"`
	Body           string `json:"body"`
	BodyBase64     string `json:"body_base64"`
}

// onNATS adds the address of the stack's NATS server to a command line.
func onNATS(st *stacktest.Stack, args ...string) []string {
	return append(append([]string{"quarantine"}, args...), "--nats", st.NATS)
}

func connectPipeline(t *testing.T, st *stacktest.Stack) *pipeline.Client {
	t.Helper()
	client, err := pipeline.Connect(t.Context(), st.NATS)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
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
	client := connectPipeline(t, st)
	var c console
	putPoints(t, client, "shelf", "RefusedPoint", 7)
	putPoints(t, client, "shelf", "BadPoint", 2)
	_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{{
		Stage: pipeline.StageExtract, Operation: "test", Name: "shelf.csi", Class: "BadRecord", Reason: "no record", Job: "e", Body: []byte("<\x00rec\x1b[2J\xff"),
	}})
	require.NoError(t, err)

	items := decoded[[]itemShown](t, c, onNATS(st, "list", "--location", "shelf")...)
	require.Len(t, items, 9)
	require.Greater(t, items[0].ID, items[8].ID, "the newest first")
	require.Equal(t, "BadPoint", items[0].Class)
	require.True(t, items[0].Replayable)
	require.Empty(t, items[0].Body)
	oldest := decoded[[]itemShown](t, c, onNATS(st, "list", "--location", "shelf", "--oldest-first", "--limit", "3")...)
	require.Equal(t, []uint64{items[8].ID, items[7].ID, items[6].ID}, []uint64{oldest[0].ID, oldest[1].ID, oldest[2].ID})
	r := c.run(t.Context(), onNATS(st, "list", "--location", "shelf", "--class", "RefusedPoint", "--limit", "3")...)
	require.Zero(t, r.code)
	require.Equal(t, 4, strings.Count(r.stdout, "\n"), r.stdout)
	require.Regexp(t, `(?m)^ID +SINCE +STAGE +OPERATION +NAME +CLASS +REASON$`, r.stdout)
	before := fmt.Sprintf("--before %d", items[4].ID)
	require.Contains(t, r.stderr, "4 more; starter quarantine list "+before)
	page := decoded[[]itemShown](t, c, onNATS(st, "list", "--location", "shelf", "--class", "RefusedPoint", "--limit", "3", "--before", fmt.Sprint(items[4].ID))...)
	require.Equal(t, items[5].ID, page[0].ID)
	require.Equal(t, "[]\n", c.ok(t, onNATS(st, "list", "--location", "nowhere", "-o", "json")...))

	type group struct {
		Stage, Operation, Name, Class string
		Items, Replayable             int
		Oldest, Newest                string
		LatestID                      uint64 `json:"latest_id"`
	}
	groups := decoded[[]group](t, c, onNATS(st, "list", "--summary", "--location", "shelf")...)
	require.Len(t, groups, 2)
	require.Equal(t, []int{7, 2}, []int{groups[0].Items, groups[1].Items})
	require.Equal(t, 7, groups[0].Replayable)
	groups = decoded[[]group](t, c, onNATS(st, "list", "--summary", "--organization", "shelf", "--stage", "extract", "--operation", "test")...)
	require.Equal(t, []int{1, 0}, []int{groups[0].Items, groups[0].Replayable})

	// One item, with its body as it is.
	id := fmt.Sprint(items[8].ID)
	shown := decoded[itemShown](t, c, onNATS(st, "show", id)...)
	require.Equal(t, `{"n":0}`, shown.Body)
	require.EqualValues(t, 1_000_000, shown.OriginSequence)
	text := c.ok(t, onNATS(st, "show", id)...)
	for _, want := range []string{"RefusedPoint", "field type conflict", "dendra.prep.v1.live.shelf", "1000000 of its stream", "http://127.0.0.1:8086", "\n\n{\"n\":0}\n"} {
		require.Contains(t, text, want)
	}
	bad := decoded[[]itemShown](t, c, onNATS(st, "list", "--organization", "shelf")...)[0]
	badID := fmt.Sprint(bad.ID)
	require.Contains(t, c.ok(t, onNATS(st, "show", badID)...), "<\x00rec\x1b[2J\xff", "verbatim")
	require.Equal(t, "<\x00rec\x1b[2J\xff", c.ok(t, onNATS(st, "show", badID, "--body")...))
	require.NotEmpty(t, decoded[itemShown](t, c, onNATS(st, "show", badID)...).BodyBase64)
	terminal := console{terminal: true}
	require.NotContains(t, terminal.ok(t, onNATS(st, "show", badID, "--no-color")...), "\x1b[2J", "a body does not steer the terminal")

	t.Run("replay", func(t *testing.T) { quarantineReplay(t, st, client, items) })
	t.Run("drop", func(t *testing.T) { quarantineDrop(t, st, bad.ID) })
}

func quarantineReplay(t *testing.T, st *stacktest.Stack, client *pipeline.Client, items []itemShown) {
	var c console
	id := fmt.Sprint(items[8].ID)
	r := c.run(t.Context(), onNATS(st, "replay", id)...)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: there is no terminal to ask on: add --yes to replay 1 item\n", r.stderr)
	no := console{terminal: true, stdin: "n\n"}
	r = no.run(t.Context(), onNATS(st, "replay", "--location", "shelf", "--class", "RefusedPoint")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "Publish 7 items again? [y/N] ")
	require.Contains(t, r.stderr, "nothing was replayed")

	require.Equal(t, "1 item replayed.\n", c.ok(t, onNATS(st, "replay", id, "--yes")...))
	r = c.run(t.Context(), onNATS(st, "replay", id, "--yes")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "item "+id+": it is not in quarantine; starter quarantine list shows the items")
	type outcome struct{ Replayed, Missing, Left int }
	require.Equal(t, outcome{Replayed: 6}, decoded[outcome](t, c, onNATS(st, "replay", "--location", "shelf", "--class", "RefusedPoint", "--yes")...))
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

func quarantineDrop(t *testing.T, st *stacktest.Stack, bad uint64) {
	var c console
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
	require.Equal(t, struct{ Dropped int }{2}, decoded[struct{ Dropped int }](t, c, onNATS(st, "drop", "--location", "shelf", "--yes")...))
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
