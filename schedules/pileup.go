package schedules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/recurrence"
)

const (
	// pileUpSeconds is how far ahead pile-ups are looked for.
	pileUpSeconds = 24 * 60 * 60
	// leastLate is how late, in seconds, the last start of a pile-up is that is
	// worth a word.
	leastLate = 1.0
	// mostPileUps bounds the warnings about pile-ups.
	mostPileUps = 10
)

// alike are jobs that start at the same times.
type alike struct {
	ids    []string
	times  recurrence.Times
	jitter time.Duration
}

// startsAt says by what jobs are alike.
type startsAt struct {
	every, phase, jitter job.Duration
	cron, zone           string
	start, end           int64
}

func groups(jobs []timedJob) []*alike {
	var list []*alike
	found := map[startsAt]*alike{}
	for _, j := range jobs {
		r := j.Recurring
		key := startsAt{
			every: r.RecurEvery, phase: r.Phase(j.ID), jitter: r.Jitter, cron: r.Cron, zone: r.Zone(),
			start: r.StartAt.UnixNano(), end: r.EndAt.UnixNano(),
		}
		if found[key] == nil {
			found[key] = &alike{times: j.times, jitter: r.Jitter.Std()}
			list = append(list, found[key])
		}
		found[key].ids = append(found[key].ids, j.ID)
	}
	return list
}

// load adds the starts of the group to those due in each second from a time on.
// Jitter spreads a start evenly: which part of it the server adds is not known.
func (g *alike) load(due []float64, from time.Time) {
	spread := max(int(g.jitter/time.Second), 1)
	first := from.Add(-time.Second)
	weight := float64(len(g.ids)) / float64(spread)
	for at := range g.times.After(first.Add(-g.jitter)) {
		second := int(at.Sub(from) / time.Second)
		if second >= len(due) {
			return
		}
		for n := max(second, 0); n < min(second+spread, len(due)); n++ {
			due[n] += weight
		}
	}
}

// pileUp is a time in which more runs are due than start.
type pileUp struct {
	// first and worst are seconds: the first, and the one in which most wait.
	first, worst int
	// starts are due from first to worst.
	starts, waiting float64
}

// findPileUps goes through the seconds as the server does: each adds to what
// waits, and StartsPerSecond leave.
func findPileUps(due []float64) []pileUp {
	var list []pileUp
	var current pileUp
	waiting, starts := 0.0, 0.0
	end := func() {
		if current.waiting >= leastLate*StartsPerSecond {
			list = append(list, current)
		}
		current = pileUp{}
	}
	for second, n := range due {
		if waiting == 0 {
			current.first, starts = second, 0
		}
		starts += n
		waiting = max(waiting+n-StartsPerSecond, 0)
		if waiting > current.waiting {
			current.worst, current.waiting, current.starts = second, waiting, starts
		}
		if waiting == 0 {
			end()
		}
	}
	end()
	return list
}

// pileUps warns of each distinct cause once, where it is worst.
func pileUps(jobs []timedJob, now time.Time) []Warning {
	from := now.Truncate(time.Second).Add(time.Second)
	due := make([]float64, pileUpSeconds)
	all := groups(jobs)
	for _, g := range all {
		g.load(due, from)
	}
	found := findPileUps(due)
	slices.SortStableFunc(found, func(a, b pileUp) int { return cmp.Compare(b.waiting, a.waiting) })
	var causes []*cause
	for _, p := range found {
		members, starts := p.members(all, from)
		n := slices.IndexFunc(causes, func(c *cause) bool { return 2*c.share(members) >= starts })
		if n >= 0 {
			causes[n].more++
		} else if len(causes) < mostPileUps {
			causes = append(causes, &cause{pileUp: p, members: members})
		}
	}
	list := make([]Warning, len(causes))
	for n, c := range causes {
		list[n] = c.warning(from)
	}
	return list
}

// members are the groups with starts in a pile-up, and how many of them there are.
func (p pileUp) members(all []*alike, from time.Time) (map[*alike]int, int) {
	members, total := map[*alike]int{}, 0
	first, last := from.Add(time.Duration(p.first-1)*time.Second), from.Add(time.Duration(p.worst)*time.Second)
	for _, g := range all {
		if n := g.times.Count(first.Add(-g.jitter), last, pileUpSeconds); n > 0 {
			members[g] = n * len(g.ids)
			total += members[g]
		}
	}
	return members, total
}

// cause is a pile-up that stands for others of nearly the same jobs.
type cause struct {
	pileUp
	members map[*alike]int
	more    int
}

// share is how many of the starts are of jobs of this cause.
func (c *cause) share(members map[*alike]int) int {
	share := 0
	for g, n := range members {
		if c.members[g] > 0 {
			share += n
		}
	}
	return share
}

func (c *cause) warning(from time.Time) Warning {
	at := from.Add(time.Duration(c.worst) * time.Second).UTC()
	w := Warning{Kind: WarnPileUp, At: at}
	for g, n := range c.members {
		for _, id := range g.ids {
			w.Jobs = append(w.Jobs, WarnedJob{id, n / len(g.ids)})
		}
	}
	sortJobs(w.Jobs)
	when := "at " + at.Format(time.RFC3339)
	if c.worst > c.first {
		when = fmt.Sprintf("within %s up to %s", time.Duration(c.worst-c.first+1)*time.Second, at.Format(time.RFC3339))
	}
	w.Text = fmt.Sprintf("%s of %s are due %s (%s), and a server starts %d per second by default: there the last one starts %s late",
		plural(int(c.starts+0.5), "run"), plural(len(w.Jobs), "job"), when, jobsText(w.Jobs), StartsPerSecond, seconds(c.waiting/StartsPerSecond))
	if c.more > 0 {
		w.Text += fmt.Sprintf("; so it is %s in the next 24 hours", plural(c.more, "more time"))
	}
	return w
}
