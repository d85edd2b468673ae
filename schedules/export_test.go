package schedules

import "github.com/dendrascience/dendra-jobs/job"

// CronCalendarTexts writes the calendars of a cron text as edits shows them.
func CronCalendarTexts(text string) ([]string, error) {
	calendars, err := cronCalendars(text)
	var texts []string
	for _, c := range calendars {
		texts = append(texts, calendarText(c))
	}
	return texts, err
}

// WantedVersion is the version of a job's schedule as apply leaves it.
func WantedVersion(j job.Job) (string, error) {
	wanted, err := scheduleOf(j)
	if err != nil {
		return "", err
	}
	return wantedVersion(j, wanted)
}
