package ldmptest_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
)

var midnight = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

// world is a server of one station with a clock that a test moves.
type world struct {
	*testing.T
	*ldmptest.Server
	now     atomic.Pointer[time.Time]
	address string
}

func newWorld(t *testing.T, window int) *world {
	t.Helper()
	w := &world{T: t}
	w.set(midnight.Add(time.Hour))
	w.Server = ldmptest.New(ldmptest.Options{
		Now: func() time.Time { return *w.now.Load() }, Ledger: true, Window: window, Seed: 5,
		Stations: ldmptest.Stations(1, ldmptest.Table{Name: "TenMin", Since: midnight, ResetEvery: 5}),
	})
	w.listen()
	t.Cleanup(w.Stop)
	return w
}

func (w *world) set(now time.Time) { w.now.Store(&now) }

func (w *world) listen() {
	w.Helper()
	address := w.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp4", address)
	require.NoError(w, err)
	w.address = listener.Addr().String()
	w.Start(listener, nil)
}

func (w *world) open(group ldmp.Group) *client {
	w.Helper()
	group.Station, group.Table = "stn_0", "TenMin"
	c, err := ldmp.Open(w.Context(), ldmp.Config{Address: w.address}, []ldmp.Group{{Station: "none", Table: "TenMin"}, group})
	require.NoError(w, err)
	w.Cleanup(func() { _ = c.Close() })
	return &client{w, c}
}

type client struct {
	*world
	*ldmp.Conn
}

// minutes reads records and acknowledges them, and gives their minutes after midnight.
func (c *client) minutes(n int) (minutes []int) {
	c.world.Helper()
	for range n {
		record, err := c.Next()
		require.NoError(c, err)
		clock, err := record.Clock()
		require.NoError(c, err)
		minutes = append(minutes, int(ldmp.At(clock, -8*time.Hour).Sub(midnight)/time.Minute))
		require.NoError(c, c.Ack(1))
	}
	return minutes
}

func TestStartOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	at := func(minute int) time.Time {
		return ldmp.ClockAt(midnight.Add(time.Duration(minute)*time.Minute), -8*time.Hour)
	}
	for _, c := range []struct {
		start ldmp.Start
		want  []int
	}{
		{ldmp.AtOldest(), []int{0, 10}},
		{ldmp.AtNewest(), []int{60}},
		{ldmp.AtTime(at(20)), []int{20, 30}},
		{ldmp.AtTime(at(21)), []int{30, 40}},
		{ldmp.AtTime(at(-500)), []int{0}},
		{ldmp.RelativeToNewest(20 * time.Minute), []int{40, 50, 60}},
	} {
		require.Equal(t, c.want, w.open(ldmp.Group{Start: c.start}).minutes(len(c.want)), c.start)
	}
}

func TestOneRecordPerAcknowledgement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c := w.open(ldmp.Group{})
	_, err := c.Next()
	require.NoError(t, err)
	c.minutes(0)
	sent, acknowledged := w.Total()
	require.Equal(t, []int64{1, 0}, []int64{sent, acknowledged})
	require.NoError(t, c.Ack(1))
	require.Equal(t, []int{10, 20}, c.minutes(2))
	account, err := w.Account("stn_0", "TenMin")
	require.NoError(t, err)
	require.LessOrEqual(t, len(account.Unacknowledged), 1)
	require.NoError(t, c.Ack(9))
	for {
		if _, err := c.Next(); err != nil {
			break
		}
	}
	require.Eventually(t, func() bool { return w.Refused() != nil }, time.Minute, time.Millisecond)
	require.ErrorContains(t, w.Refused(), "an acknowledgement of nothing")
}

func TestHolesHoldUpTheirTableOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	hole, err := w.OpenHole("stn_0", "TenMin", midnight.Add(20*time.Minute), midnight.Add(40*time.Minute))
	require.NoError(t, err)
	ordered, asCollected := w.open(ldmp.Group{}), w.open(ldmp.Group{Order: ldmp.Collected})
	require.Equal(t, []int{0, 10}, ordered.minutes(2))
	require.Equal(t, []int{0, 10, 40, 50, 60}, asCollected.minutes(5))
	hole.Fill()
	require.Equal(t, []int{20, 30, 40, 50, 60}, ordered.minutes(5))
	require.Equal(t, []int{20, 30, 40, 50, 60}, asCollected.minutes(5))

	hole, err = w.OpenHole("stn_0", "TenMin", midnight.Add(70*time.Minute), midnight.Add(80*time.Minute))
	require.NoError(t, err)
	w.set(midnight.Add(80 * time.Minute))
	w.Touch()
	hole.GiveUp()
	require.Equal(t, []int{80}, ordered.minutes(1))
	readings, err := w.Readings("stn_0", "TenMin", midnight, midnight.Add(24*time.Hour))
	require.NoError(t, err)
	require.Len(t, readings, 8)
}

func TestReadingsAreWhatIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	require.NoError(t, w.Replace("stn_0", "TenMin", midnight.Add(10*time.Minute), []byte("oops")))
	readings, err := w.Readings("stn_0", "TenMin", midnight, midnight.Add(24*time.Hour))
	require.NoError(t, err)
	require.Len(t, readings, 6)
	require.Equal(t, []int64{0, 2, 3, 4, 0, 1}, []int64{
		readings[0].Number, readings[1].Number, readings[2].Number, readings[3].Number, readings[4].Number, readings[5].Number,
	}, "the numbers begin again")
	c := w.open(ldmp.Group{})
	for i := range 7 {
		record, err := c.Next()
		if i == 1 {
			var malformed *ldmp.MalformedError
			require.ErrorAs(t, err, &malformed)
			require.Equal(t, "oops", string(malformed.Raw))
		} else {
			require.NoError(t, err)
			require.Equal(t, readings[max(0, i-1)].Record(), record)
		}
		require.NoError(t, c.Ack(1))
	}

	// After a restart on the same address the same is told again.
	w.Stop()
	_, err = c.Next()
	require.Error(t, err)
	w.listen()
	require.Equal(t, []int{0}, w.open(ldmp.Group{}).minutes(1))
	require.EqualValues(t, 2, w.Served())
}
