package schedules

import "github.com/dendrascience/dendra-jobs/job"

// CronCalendarTexts writes the calendars of a cron text as edits shows them.
func CronCalendarTexts(text string) ([]string, error) {
	times, err := job.Recurring{Cron: text}.Times("")
	if err != nil {
		return nil, err
	}
	calendars, _ := cronCalendars(text, times)
	var texts []string
	for _, c := range calendars {
		texts = append(texts, calendarText(c))
	}
	return texts, nil
}

// WantedVersion is the version of a job's schedule as apply leaves it.
func WantedVersion(j job.Job) (string, error) {
	wanted, err := scheduleOf(j)
	if err != nil {
		return "", err
	}
	return wantedVersion(j, wanted)
}

// Looks are those at many jobs.
type Looks = looks

// At looks at a job.
func (l *looks) At(look func() error) (unread, err error) { return l.at(look) }

// Err says that the server answers for no job.
func (l *looks) Err() error { return l.err() }
