package schedules

// CronCalendarTexts writes the calendars of a cron text as edits shows them.
func CronCalendarTexts(text string) ([]string, error) {
	calendars, err := cronCalendars(text)
	var texts []string
	for _, c := range calendars {
		texts = append(texts, calendarText(c))
	}
	return texts, err
}
