package platform_test

import (
	crand "crypto/rand"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func TestAChangeTellsWhatWasDone(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	s := a.stream(t, now())
	first, _ := s.checkpoint(t)
	require.Empty(t, first)

	made := a.put(t, organization(1))
	renamed := organization(1)
	renamed.GetOrganization().Name, renamed.GetOrganization().Slug = "Another", "another"
	a.put(t, renamed)
	a.put(t, station(2, 1))
	a.delete(t, "station", id(2))

	c := s.change(t).GetChange()
	require.Equal(t, create, c.GetOperation())
	require.Equal(t, kindOrganization, c.GetKind())
	require.Equal(t, id(1), c.GetResourceId())
	require.Equal(t, id(1), c.GetOrganizationId())
	require.Equal(t, "user:ada", c.GetActor())
	require.NotEmpty(t, c.GetId())
	require.Nil(t, c.GetBefore())
	requireEqual(t, made, c.GetAfter())

	c = s.change(t).GetChange()
	require.Equal(t, update, c.GetOperation())
	require.Equal(t, []string{"name", "slug"}, c.GetChangedKeys())
	requireEqual(t, made, c.GetBefore())
	require.Equal(t, "Another", c.GetAfter().GetOrganization().GetName())
	require.Equal(t, "user:ada", c.GetAfter().GetOrganization().GetModification().GetUpdatedBy())

	require.Equal(t, create, s.change(t).GetChange().GetOperation())
	c = s.change(t).GetChange()
	require.Equal(t, remove, c.GetOperation())
	require.Equal(t, id(2), c.GetResourceId())
	require.Equal(t, id(1), c.GetOrganizationId())
	require.NotNil(t, c.GetBefore())
	require.Nil(t, c.GetAfter())
}

// What is as it was is no change.
func TestAnEqualResourceIsNoChange(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	made := a.put(t, organization(1))
	s := a.stream(t, now())
	s.checkpoint(t)
	requireEqual(t, made, a.put(t, organization(1)))
	a.put(t, organization(2))
	require.Equal(t, id(2), s.change(t).GetChange().GetResourceId())
}

// Changes by many writers come in one order, in which each follows from the one before.
func TestChangesAreInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(1))
	s := a.stream(t, now())
	s.checkpoint(t)
	const writers, writes, stations = 8, 25, 5
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for n := range writes {
				r := station(2+n%stations, 1)
				r.GetStation().Description = fmt.Sprint(w, " ", n)
				_, err := platformtest.Put(t.Context(), a.Config, r, "")
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	last := 0
	state := map[string]*platformv1.Resource{}
	for range writers * writes {
		c := s.change(t).GetChange()
		seq, err := strconv.Atoi(c.GetAfter().GetStation().GetEtag())
		require.NoError(t, err)
		require.Greater(t, seq, last)
		last = seq
		requireEqual(t, state[c.GetResourceId()], c.GetBefore())
		state[c.GetResourceId()] = c.GetAfter()
	}
}

func TestAStreamGoesOnAtItsToken(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	s := a.stream(t, now())
	_, token := s.checkpoint(t)
	for n := range 10 {
		a.put(t, organization(n))
	}
	seen := 0
	for seen < 4 {
		response := s.change(t)
		require.Equal(t, id(seen), response.GetChange().GetResourceId())
		token = response.GetResumeToken()
		seen++
	}
	s.end()

	a.restart(t) // The log is kept.
	s = a.stream(t, resume(token))
	for ; seen < 10; seen++ {
		require.Equal(t, id(seen), s.change(t).GetChange().GetResourceId())
	}
}

func TestCheckpointsMoveTheTokenOn(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{Checkpoint: 10 * time.Millisecond})
	a.put(t, organization(1))
	s := a.stream(t, now(kindDatastream))
	_, before := s.checkpoint(t)
	a.put(t, organization(2)) // of another kind
	after := before
	for after == before {
		var changes []*platformv1.Change
		changes, after = s.checkpoint(t)
		require.Empty(t, changes)
	}
	require.NoError(t, platformtest.Trim(t.Context(), a.Config, 0))
	s = a.stream(t, resume(after, kindDatastream))
	a.put(t, datastream(3, 1))
	require.Equal(t, id(3), s.change(t).GetChange().GetResourceId())
}

func TestATokenIsTooOldWhenTheLogWasTrimmed(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	s := a.stream(t, now())
	_, token := s.checkpoint(t)
	for n := range 5 {
		a.put(t, organization(n))
	}
	require.NoError(t, platformtest.Trim(t.Context(), a.Config, 4))
	err := a.stream(t, resume(token)).fails(t)
	requireReason(t, err, connect.CodeOutOfRange, platformv1.ErrorReason_ERROR_REASON_TOO_OLD)

	// The subscriber begins with a snapshot and goes on from there.
	s = a.stream(t, snapshot())
	changes, token := s.checkpoint(t)
	require.Len(t, changes, 5)
	s.end()
	a.put(t, organization(5))
	require.Equal(t, id(5), a.stream(t, resume(token)).change(t).GetChange().GetResourceId())
}

func TestTokensOfOtherFeeds(t *testing.T) {
	t.Parallel()
	a, other := start(t, reference.Options{}), start(t, reference.Options{})
	_, token := other.stream(t, now()).checkpoint(t)
	err := a.stream(t, resume(token)).fails(t)
	requireReason(t, err, connect.CodeOutOfRange, platformv1.ErrorReason_ERROR_REASON_TOO_OLD)

	_, token = a.stream(t, now(kindStation)).checkpoint(t)
	for _, wrong := range []*platformv1.StreamChangesRequest{resume(token), resume(token, kindStation, kindDatastream), resume("token")} {
		err = a.stream(t, wrong).fails(t)
		requireReason(t, err, connect.CodeInvalidArgument, platformv1.ErrorReason_ERROR_REASON_TOKEN_INVALID)
	}
	err = a.stream(t, &platformv1.StreamChangesRequest{}).fails(t)
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
}

// A subscriber that does not read while the log is trimmed learns of it.
func TestASlowSubscriberIsTooOld(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{Keep: 5})
	a.put(t, organization(0))
	s := a.stream(t, now())
	s.checkpoint(t)
	for range 100 {
		r := organization(0)
		noise := make([]byte, 100_000) // what is compressed fits into buffers
		_, _ = crand.Read(noise)
		r.GetOrganization().Description = hex.EncodeToString(noise)
		a.put(t, r)
	}
	requireReason(t, s.fails(t), connect.CodeOutOfRange, platformv1.ErrorReason_ERROR_REASON_TOO_OLD)
}

// While others write, a snapshot and the changes after it give every state once: each
// change fits what was read or told before it.
func TestASnapshotAndItsTailHaveNoGapAndNothingTwice(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(0))
	const stations = 300
	for n := range stations / 2 {
		a.put(t, station(n, 0))
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for range 3 {
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					disturb(t, a, rand.IntN(stations), n)
				}
			}
		})
	}
	for range 5 {
		s := a.stream(t, snapshot(kindStation))
		state := map[string]*platformv1.Resource{}
		reads := s.replayTo(t, state, func(c *platformv1.Change) bool { return c == nil })
		require.NotZero(t, reads)
		changes := 0
		require.Zero(t, s.replayTo(t, state, func(*platformv1.Change) bool { changes++; return changes > 50 }))
		s.end()
	}
	close(stop)
	writing.Wait()

	s := a.stream(t, snapshot(kindStation))
	state := map[string]*platformv1.Resource{}
	s.replayTo(t, state, func(c *platformv1.Change) bool { return c == nil })
	requireStations(t, a, state)
}

// A snapshot that is cut off goes on where it was. It then ends in the state that is.
func TestASnapshotIsResumed(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(0))
	const stations = 60
	for n := range stations {
		a.put(t, station(n, 0))
	}
	state := map[string]*platformv1.Resource{}
	request := snapshot(kindStation)
	resumed := 0
	for complete := false; ; resumed++ {
		s := a.stream(t, request)
		for range 20 {
			response := s.next(t)
			if complete = response.GetChange().GetOperation() != read; complete {
				break
			}
			state[response.GetChange().GetResourceId()] = response.GetChange().GetAfter()
			request = resume(response.GetResumeToken(), kindStation)
		}
		s.end()
		if complete { // a station that is created now could be after the place, and would be read
			break
		}
		for n := range 5 {
			disturb(t, a, rand.IntN(stations), n)
		}
	}
	require.Greater(t, resumed, 1)
	s := a.stream(t, request)
	changes, _ := s.checkpoint(t)
	for _, c := range changes {
		require.NotEqual(t, read, c.GetOperation(), "it was read to its end")
		if state[c.GetResourceId()] = c.GetAfter(); c.GetAfter() == nil {
			delete(state, c.GetResourceId())
		}
	}
	requireStations(t, a, state)
}

// replayTo applies changes to the state, each of which must fit it, and returns how many
// were read by a snapshot. It ends with the response for which end is true.
func (s *stream) replayTo(t *testing.T, state map[string]*platformv1.Resource, end func(*platformv1.Change) bool) (reads int) {
	t.Helper()
	for {
		c := s.next(t).GetChange()
		switch c.GetOperation() {
		case read:
			require.Nil(t, state[c.GetResourceId()], "read twice")
			state[c.GetResourceId()] = c.GetAfter()
			reads++
		case create, update, remove:
			requireEqual(t, state[c.GetResourceId()], c.GetBefore(), "the change does not fit")
			if state[c.GetResourceId()] = c.GetAfter(); c.GetAfter() == nil {
				delete(state, c.GetResourceId())
			}
		}
		if end(c) {
			return reads
		}
	}
}

// disturb makes, changes or deletes a station.
func disturb(t *testing.T, a *api, n, turn int) {
	t.Helper()
	var err error
	if turn%3 == 0 {
		err = platformtest.Delete(t.Context(), a.Config, "station", id(n))
	} else {
		r := station(n, 0)
		r.GetStation().Description = fmt.Sprint(turn)
		_, err = platformtest.Put(t.Context(), a.Config, r, "")
	}
	if err != nil {
		t.Error(err)
	}
}

func requireStations(t *testing.T, a *api, state map[string]*platformv1.Resource) {
	t.Helper()
	listed, err := a.Metadata.ListStations(t.Context(), &platformv1.ListStationsRequest{PageSize: 1000})
	require.NoError(t, err)
	require.Len(t, state, len(listed.GetStations()))
	for _, s := range listed.GetStations() {
		requireEqual(t, s, state[s.GetId()].GetStation())
	}
}
