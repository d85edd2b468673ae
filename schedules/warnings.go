package schedules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// Warning is about starts of a job that daylight saving skips or doubles.
type Warning struct {
	JobID string `json:"job_id"`
	// Text is one sentence.
	Text string `json:"text"`
	// At is when it happens first.
	At time.Time `json:"at"`
}

// Warnings looks for starts that daylight saving skips or doubles in the twelve
// months after now, and gives those that come first, first. It leaves out jobs
// that are paused or not valid. It asks no server.
func Warnings(jobs []job.Job, now time.Time) []Warning {
	var list []Warning
	for _, j := range jobs {
		if j.Mode() != job.ModeRecurring || j.Options.Paused {
			continue
		}
		times, err := j.Recurring.Times(j.ID)
		if err != nil {
			continue // Validation reports it.
		}
		if w, warn := clockWarning(j, times, now); warn {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b Warning) int { return a.At.Compare(b.At) })
	return list
}

func clockWarning(j job.Job, times recurrence.Times, now time.Time) (Warning, bool) {
	irregular := slices.DeleteFunc(times.Irregular(now, now.AddDate(1, 0, 0)), func(i recurrence.Irregular) bool {
		return i.Kind == recurrence.Moved // As documented.
	})
	if len(irregular) == 0 {
		return Warning{}, false
	}
	counts := map[recurrence.Irregularity]int{}
	for _, i := range irregular {
		counts[i.Kind]++
	}
	var parts []string
	for _, kind := range []recurrence.Irregularity{recurrence.Skipped, recurrence.Doubled} {
		if n := counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	first := irregular[0]
	return Warning{
		JobID: j.ID, At: first.At,
		Text: fmt.Sprintf("job %s: daylight saving makes starts irregular in the next 12 months: %s, first at %s in %s",
			j.ID, strings.Join(parts, ", "), first.Local, j.Recurring.Zone()),
	}, true
}
