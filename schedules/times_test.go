package schedules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// zones change their clocks in every way there is: by an hour east and west of
// Greenwich, at midnight, by half an hour, by two hours, in Ramadan, not at all.
var zones = []string{
	"UTC", "Europe/Prague", "Europe/London", "America/New_York", "America/Los_Angeles", "America/Havana", "America/Santiago",
	"America/St_Johns", "Asia/Beirut", "Asia/Kolkata", "Africa/Cairo", "Africa/Casablanca", "Australia/Lord_Howe",
	"Australia/Sydney", "Pacific/Auckland", "Pacific/Chatham", "Antarctica/Troll", "Atlantic/Azores", "America/Nuuk", "Europe/Dublin",
}

// TestTimesAreThoseOfTheServer compares the starts of random jobs with those that
// the server names for their schedules, mostly around changes of the clocks.
func TestTimesAreThoseOfTheServer(t *testing.T) {
	const count = 90
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	random := stacktest.Random(t)
	var jobs []job.Job
	for n := range count {
		r := randomTimes(t, random)
		jobs = append(jobs, declare(fmt.Sprintf("random-%d", n), job.Trigger{Recurring: &r}, func(j *job.Job) {
			j.Options.Paused = true
		}))
	}
	f.apply(f.plan(false, jobs...))
	ranges := make([][2]time.Time, count)
	for n, j := range jobs {
		ranges[n] = randomRange(random, *j.Recurring)
	}
	require.NoError(t, temporalclient.Each(count, 0, func(n int) error { return f.sameTimes(jobs[n], ranges[n][0], ranges[n][1]) }))
}

// sameTimes asks the server for the starts of a job in a range.
func (f *fixture) sameTimes(j job.Job, from, to time.Time) error {
	response, err := f.temporal.WorkflowService().ListScheduleMatchingTimes(f.Context(), &workflowservice.ListScheduleMatchingTimesRequest{
		Namespace: f.client.Namespace(), ScheduleId: contract.ScheduleID(j.ID),
		StartTime: timestamppb.New(from), EndTime: timestamppb.New(to),
	})
	if err != nil {
		return err
	}
	times, err := j.Recurring.Times(j.ID)
	if err != nil {
		return err
	}
	var want, got []string
	for _, at := range response.GetStartTime() {
		want = append(want, at.AsTime().Format(time.RFC3339Nano))
	}
	for at := range times.After(from) {
		const most = 1000 // of the server
		if at.After(to) || len(got) == most {
			break
		}
		got = append(got, at.Format(time.RFC3339Nano))
	}
	if strings.Join(want, " ") != strings.Join(got, " ") {
		return fmt.Errorf("%+v from %s to %s: the server has\n%s\nwe have\n%s", *j.Recurring, from, to, want, got)
	}
	return nil
}

// randomTimes have at least one start left: a job that has ended has no schedule
// that could be asked.
func randomTimes(t *testing.T, random *rand.Rand) job.Recurring {
	for range 1000 {
		r := randomRecurring(random)
		times, err := r.Times("random")
		require.NoError(t, err)
		for range times.After(time.Now()) {
			return r
		}
	}
	t.Fatal("no times with a start left in 1,000 drawings")
	return job.Recurring{}
}

func randomRecurring(random *rand.Rand) job.Recurring {
	var r job.Recurring
	if random.IntN(8) == 0 {
		r.RecurEvery = job.Duration(time.Duration(1+random.IntN(100_000)) * time.Second)
	} else {
		r.Cron = randomCron(random)
		r.TimeZone = zones[random.IntN(len(zones))]
	}
	limit := func() time.Time {
		return randomMoment(random).Add(time.Duration(random.IntN(2)) * time.Second / 2)
	}
	switch random.IntN(8) {
	case 0:
		r.StartAt = limit()
	case 1:
		r.EndAt = limit()
	}
	return r
}

// randomMoment is within the three years that follow this one.
func randomMoment(random *rand.Rand) time.Time {
	return time.Date(time.Now().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(3*366*86400)) * time.Second)
}

// randomCron favors the hours at which clocks change.
func randomCron(random *rand.Rand) string {
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	for {
		text := strings.Join([]string{
			pick("0", "30", "15", "*", "*/15", "59", "0-29", fmt.Sprint(random.IntN(60))),
			pick("*", "0", "1", "2", "3", "23", "0-3", "1,2", "2,3", "*/2", "22,23", "1-23/3", fmt.Sprint(random.IntN(24))),
			pick("*", "*", "*", "1-15", "*/5", "25-31", fmt.Sprint(1+random.IntN(28))),
			pick("*", "*", "*", "3,10", "4,9-11", fmt.Sprint(1+random.IntN(12))),
			pick("*", "*", "*", "sun", "0,6", "mon-fri", "*/2"),
		}, " ")
		if _, err := recurrence.ParseCron(text); err == nil {
			return text
		}
	}
}

// randomRange is some days around a change of the clocks in the job's zone, if
// there is one, within its limits or over them.
func randomRange(random *rand.Rand, r job.Recurring) [2]time.Time {
	at := randomMoment(random)
	for _, limit := range []time.Time{r.StartAt, r.EndAt} {
		if !limit.IsZero() && random.IntN(2) == 0 {
			at = limit
		}
	}
	if zone, err := time.LoadLocation(r.Zone()); err == nil && random.IntN(8) > 0 {
		if _, change := at.In(zone).ZoneBounds(); !change.IsZero() {
			at = change.Add(time.Duration(random.IntN(4*3600)-2*3600) * time.Second)
		}
	}
	return [2]time.Time{
		at.Add(-time.Duration(random.IntN(40*3600)) * time.Second),
		at.Add(time.Duration(random.IntN(10*86400)) * time.Second),
	}
}
