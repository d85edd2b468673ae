package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// keepLoading runs iteration after iteration of a location's load until the test ends.
func keepLoading(t *testing.T, st *stacktest.Stack, client *pipeline.Client, name string, mirrors ...influx.Mirror) {
	t.Helper()
	jobType := load.LiveInflux(client, load.WithBackoff(5*time.Millisecond, 50*time.Millisecond))
	definition := jobtest.NewJob(jobType, name, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, load.LiveInfluxSpec{
		Servers:  influx.Servers{Location: name, InfluxURL: st.Influx, Mirrors: mirrors},
		BatchAge: job.Duration(20 * time.Millisecond), IterationDuration: job.Duration(100 * time.Millisecond),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, _ = jobType.Handle(ctx, jobtest.NewRun(definition)) // A mirror that is down fails it.
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// TestLoadsSkip: in the real server a database has lost its retention policy, so that
// the message for it holds up the location. Skipped, it is in quarantine, and the
// messages for another database around it are stored.
func TestLoadsSkip(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	server := influx.Config{URL: st.Influx}
	for _, statement := range []string{`CREATE DATABASE "skipbroken" WITH NAME "gone"`, `DROP RETENTION POLICY "gone" ON "skipbroken"`, `CREATE DATABASE "skipping"`} {
		_, err := influx.Query(t.Context(), server, "", statement)
		require.NoError(t, err)
	}
	message := func(database string, i int) pipeline.Outgoing {
		return pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, "skipping"), Body: fmt.Appendf(nil,
			`{"context":{"station":"s"},"payload":{"options":{"database":%q},"points":[{"measurement":"m","fields":{"v":%d},"time":%d}]}}`, database, i, i)}
	}
	var messages []pipeline.Outgoing
	for i := range 20 {
		database := "skipping"
		if i == 7 {
			database = "skipbroken"
		}
		messages = append(messages, message(database, i))
	}
	_, err := client.Publish(t.Context(), messages)
	require.NoError(t, err)
	keepLoading(t, st, client, "skipping")

	var c console // They need no Temporal.
	args := func(more ...string) []string { return append(append([]string{"loads"}, more...), "--nats", st.NATS) }
	shown := func() *jobsv1.Load {
		r := c.run(t.Context(), args("skipping", "-o", "json")...) // fails as long as there is no consumer
		var list jobsv1.ListLoadsResponse
		if r.code != 0 || protojson.Unmarshal([]byte(r.stdout), &list) != nil || len(list.GetLoads()) == 0 {
			return nil
		}
		return list.GetLoads()[0]
	}
	var held *jobsv1.Load
	stacktest.WaitFor(t, "the message to hold up the location", func() (bool, error) {
		held = shown()
		return held.GetHeldSequence() > 0 && held.GetWaiting() == 20-7, nil
	})
	number := uint64(held.GetHeldSequence())
	stored, _, err := client.Range(t.Context(), pipeline.StreamPrepared, number, number, pipeline.Limit{})
	require.NoError(t, err)
	require.Equal(t, string(messages[7].Body), string(stored[0].Body))
	names := fmt.Sprintf("message %d on %s", number, held.GetHeldSubject())
	stacktest.WaitFor(t, "loads to name the message", func() (bool, error) {
		text := c.ok(t, args("skipping")...)
		return strings.Contains(text, "skipping/live/default is blocked by "+names+": starter loads skip skipping") &&
			strings.Contains(text, "retention policy not found"), nil
	})

	r := c.run(t.Context(), args("skip", "skipping")...)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: there is no terminal to ask on: add --yes to skip the message\n", r.stderr)
	r = c.run(t.Context(), args("skip", "skipping", "--mirror", "west", "--yes")...)
	require.Equal(t, "starter: no message blocks location skipping\n", r.stderr)

	said := c.ok(t, args("skip", "skipping", "--yes", "--timeout", "PT1M")...)
	require.Regexp(t, `^Message `+fmt.Sprint(number)+` on dendra.prep.v1.live.skipping is in quarantine, as item \d+: .*retention policy not found`, said)
	items := itemsOf(t, c, st, "--location", "skipping")
	require.Len(t, items, 1)
	require.Equal(t, "Skipped", items[0].GetErrorClass())
	require.EqualValues(t, number, items[0].GetOriginSequence())
	require.Equal(t, string(messages[7].Body), string(itemOf(t, c, st, items[0].GetId()).GetBody()))

	stacktest.WaitFor(t, "all others to be stored", func() (bool, error) {
		counts, err := influx.Count(t.Context(), server, "skipping", "m")
		return counts["v"] == 19, err
	})
	stacktest.WaitFor(t, "the location to go on", func() (bool, error) {
		load := shown()
		return load.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_OK && load.GetWaiting() == 0, nil
	})
	r = c.run(t.Context(), args("skip", "skipping", "--yes", "--timeout", "PT1M")...)
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: no message blocks location skipping\n", r.stderr, "a second time does nothing")
	require.Len(t, itemsOf(t, c, st, "--location", "skipping"), 1)
}

// TestLoadsSkipOfTwoMirrors: the same message holds up both mirrors of a location. Each
// line tells the command for its mirror, and the message is in quarantine once.
func TestLoadsSkipOfTwoMirrors(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	for _, statement := range []string{`CREATE DATABASE "skipboth" WITH NAME "gone"`, `DROP RETENTION POLICY "gone" ON "skipboth"`} {
		_, err := influx.Query(t.Context(), influx.Config{URL: st.Influx}, "", statement)
		require.NoError(t, err)
	}
	_, err := client.Publish(t.Context(), []pipeline.Outgoing{{
		Subject: pipeline.PrepSubject(pipeline.OperationLive, "skipboth"),
		Body:    []byte(`{"context":{"station":"s"},"payload":{"options":{"database":"skipboth"},"points":[{"measurement":"m","fields":{"v":1},"time":1}]}}`),
	}})
	require.NoError(t, err)
	keepLoading(t, st, client, "skipboth", influx.Mirror{Name: "west", InfluxURL: strings.Replace(st.Influx, "127.0.0.1", "localhost", 1)})

	var c console // They need no Temporal.
	command := func(mirror string) string {
		return "starter loads skip skipboth --mirror " + mirror + " --operation live puts"
	}
	stacktest.WaitFor(t, "the message to hold up both", func() (bool, error) {
		r := c.run(t.Context(), "loads", "skipboth", "--nats", st.NATS) // fails as long as there is no consumer
		return strings.Contains(r.stdout, command("default")) && strings.Contains(r.stdout, command("west")), nil
	})
	skip := func(mirror string) []string {
		return []string{"loads", "skip", "skipboth", "--mirror", mirror, "--operation", "live", "--yes", "--timeout", "PT1M", "--nats", st.NATS}
	}
	r := c.run(t.Context(), "loads", "skip", "skipboth", "--yes", "--nats", st.NATS)
	require.Contains(t, r.stderr, "several loads are blocked")
	require.Regexp(t, `^Message \d+ on \S+ is in quarantine, as item \d+: `, c.ok(t, skip("default")...))
	items := itemsOf(t, c, st, "--location", "skipboth")
	require.Len(t, items, 1)
	require.Regexp(t, fmt.Sprintf(`^Message \d+ on \S+ no longer blocks skipboth/live/west\. It is in quarantine, as item %d of %s\.\n$`, items[0].GetId(), st.Influx),
		c.ok(t, skip("west")...))
	require.Len(t, itemsOf(t, c, st, "--location", "skipboth"), 1)
}

// TestLoadsThatRefuseMostPoints: a field is a number in the real server, and a location
// sends texts for it. The load says so until most points are numbers again.
func TestLoadsThatRefuseMostPoints(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	sent := 0
	publish := func(n int, value string) {
		var messages []pipeline.Outgoing
		for range n {
			sent++
			messages = append(messages, pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, "refusing"), Body: fmt.Appendf(nil,
				`{"context":{"station":"s"},"payload":{"options":{"database":"refusing"},"points":[{"measurement":"m","fields":{"v":%s},"time":%d}]}}`, value, sent)})
		}
		_, err := client.Publish(t.Context(), messages)
		require.NoError(t, err)
	}
	keepLoading(t, st, client, "refusing")
	var c console
	shown := func(what string, points, refused int64) *jobsv1.Load {
		var load *jobsv1.Load
		stacktest.WaitFor(t, what, func() (bool, error) {
			r := c.run(t.Context(), "loads", "refusing", "--nats", st.NATS, "-o", "json") // fails as long as there is no consumer
			var list jobsv1.ListLoadsResponse
			if r.code == 0 {
				require.NoError(t, protojson.Unmarshal([]byte(r.stdout), &list))
			}
			if load = nil; len(list.GetLoads()) > 0 {
				load = list.GetLoads()[0]
			}
			return load.GetRecentPoints() == points && load.GetRecentRefusedPoints() == refused, nil
		})
		return load
	}
	publish(5, "1.5")
	require.Equal(t, jobsv1.LoadStatus_LOAD_STATUS_OK, shown("numbers to be stored", 5, 0).GetStatus())
	publish(20, `"text"`)
	load := shown("texts to be refused", 25, 20)
	require.Equal(t, jobsv1.LoadStatus_LOAD_STATUS_REFUSING, load.GetStatus())
	require.NotNil(t, load.GetRefusingTime())
	text := c.ok(t, "loads", "refusing", "--nats", st.NATS)
	require.Contains(t, text, "refusing  live  default  refusing")
	require.Regexp(t, `(?m)^refusing/live/default refuses most points since .*: 20 of the latest 25 points are in quarantine, the last as RefusedPoint: .*field type conflict`, text)
	publish(15, "2.5")
	load = shown("numbers to be stored again", 40, 20)
	require.Equal(t, jobsv1.LoadStatus_LOAD_STATUS_OK, load.GetStatus())
	require.NotContains(t, c.ok(t, "loads", "refusing", "--nats", st.NATS), "refuses most points")
	require.EqualValues(t, 20, load.GetQuarantined())
}
