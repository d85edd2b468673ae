package schedules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// draw makes random jobs. Those of a round share a small number of ids, so that
// two sets overlap.
type draw struct {
	*rand.Rand
	round string
}

const drawnIDs = 10

func (d *draw) key(n int) string { return fmt.Sprintf("r%s-%d", d.round, n) }

func (d *draw) ids() []string {
	var ids []string
	for n := range drawnIDs {
		ids = append(ids, job.ID("DoNothing", d.key(n)))
	}
	return ids
}

// heldQueue is the round's queue that starts nothing; its items wait. The items
// of the other queue run at once.
func (d *draw) heldQueue() string { return "held-" + d.round }

func (d *draw) queues() []string { return []string{d.heldQueue(), "open-" + d.round} }

func isHeld(queue string) bool { return strings.HasPrefix(queue, "held-") }

func (d *draw) jobs() []job.Job {
	var jobs []job.Job
	for n := range drawnIDs {
		if d.IntN(4) > 0 {
			jobs = append(jobs, d.job(d.key(n)))
		}
	}
	return jobs
}

// job draws until the options go together.
func (d *draw) job(key string) job.Job {
	for {
		if j := d.any(key); len(j.Validate()) == 0 {
			return j
		}
	}
}

func (d *draw) any(key string) job.Job {
	var schedule job.Trigger
	switch d.IntN(6) {
	case 0, 1, 2:
		schedule.Recurring = d.recurring()
	case 3:
		schedule.Continuous = &job.Continuous{Interval: d.duration(time.Hour, 48*time.Hour)}
	case 4:
		schedule.OneShot = &job.OneShot{}
	default:
		schedule.Queued = &job.Queued{Queue: d.queues()[d.IntN(2)]}
	}
	return declare(key, schedule, func(j *job.Job) {
		j.Spec = fmt.Appendf(nil, `{"a":%d}`, d.IntN(3))
		d.options(&j.Options)
	})
}

func (d *draw) options(o *job.Options) {
	o.Paused = d.one(4)
	if d.one(2) {
		o.Owner = []job.Owner{{Organization: "ucnrs"}, {User: "ada"}}[d.IntN(2)]
	}
	if d.one(2) {
		o.Tags = map[string]string{"site": string(rune('a' + d.IntN(3)))}
	}
	if d.one(2) {
		o.Description = strings.Repeat("ü", []int{1, 9, 250}[d.IntN(3)])
	}
	if d.one(3) {
		o.RunTimeout = d.duration(time.Minute, time.Hour)
	}
	if d.one(3) {
		o.MaxRetryCount = d.IntN(5)
	}
	if d.one(3) {
		o.StopGracePeriod = d.duration(time.Second, 30*time.Second)
	}
}

// recurring draws times of which none is near.
func (d *draw) recurring() *job.Recurring {
	r := &job.Recurring{}
	if d.one(2) {
		r.RecurEvery = d.duration(24*time.Hour, 4000*time.Hour)
		if d.one(2) {
			offset := d.duration(0, r.RecurEvery.Std()-time.Second)
			r.Offset = &offset
		}
	} else {
		r.Cron = d.cron()
		r.TimeZone = []string{"", "UTC", "Europe/Prague", "America/Los_Angeles", "Asia/Kathmandu"}[d.IntN(5)]
	}
	if d.one(3) {
		r.Jitter = d.duration(time.Second, 10*time.Minute)
	}
	if d.one(2) {
		r.Overlap = job.Overlaps()[d.IntN(len(job.Overlaps()))]
	}
	if d.one(3) {
		r.CatchupWindow = d.duration(10*time.Second, 400*24*time.Hour)
	}
	if d.one(2) {
		r.Misfire = job.Misfires()[d.IntN(len(job.Misfires()))]
	}
	if d.one(6) {
		r.MaxMissed = 1 + d.IntN(1000)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(d.duration(0, 20_000*time.Hour).Std())
	if d.one(3) {
		r.StartAt = start
	}
	if d.one(3) {
		r.EndAt = start.AddDate(50, 0, 0).Add(time.Duration(d.IntN(1000)) * time.Millisecond)
	}
	return r
}

// cron draws times of at most once an hour, in a month or two.
func (d *draw) cron() string {
	day, weekday := "*", "*"
	if d.one(2) {
		day = []string{"1", "13", "*/7", "1-5,20", "2,4,6"}[d.IntN(5)]
	}
	if d.one(2) {
		weekday = []string{"mon-fri", "0", "7", "sat,sun", "1-5/2"}[d.IntN(5)]
	}
	hour := []string{"*", "4", "*/6", "9-17", "1,2,3,23"}[d.IntN(5)]
	month := []string{"1", "feb", "6,7", "*/5"}[d.IntN(4)]
	return fmt.Sprintf("%d %s %s %s %s", d.IntN(60), hour, day, month, weekday)
}

// duration draws whole seconds.
func (d *draw) duration(least, most time.Duration) job.Duration {
	return job.Duration(least + time.Duration(d.Int64N(int64((most-least)/time.Second)+1))*time.Second)
}

// one is true once in n times.
func (d *draw) one(n int) bool { return d.IntN(n) == 0 }

func texts(jobs []job.Job) string {
	var b strings.Builder
	for _, j := range jobs {
		b.WriteString("\n  " + strings.ReplaceAll(string(job.EncodeJSON(j)), "üüüüüüüüü", "…"))
	}
	return b.String()
}
