package extract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestDescribesItselfWithoutServers(t *testing.T) {
	t.Parallel()
	jobType := extract.HoboTimeFrame(nil)
	require.Equal(t, "ExtractHoboTimeFrame", jobType.Name)
	require.Equal(t, job.WorkerExtract, jobType.Worker)
	require.True(t, jobType.Allows(job.ModeRecurring))
	require.True(t, jobType.Allows(job.ModeOneShot))
	require.True(t, jobType.Allows(job.ModeQueued))
	require.False(t, jobType.Allows(job.ModeContinuous))
}

func TestSpecProblemsAreNamed(t *testing.T) {
	t.Parallel()
	const good = `"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1","station":"s"}]`
	jobType := extract.HoboTimeFrame(nil)
	require.NoError(t, jobtest.CheckSpec(jobType, "{"+good+"}"))
	for want, text := range map[string]string{
		`spec.organization: "O.x" does not match the pattern`: `{"token":"secret://t","organization":"O.x","location":"l","loggers":[{"serial":"1","station":"s"}]}`,
		`spec: key "location" is missing`:                     `{"token":"secret://t","organization":"o","loggers":[{"serial":"1","station":"s"}]}`,
		`spec.token: a secret is named, never written`:        `{"token":"plain","organization":"o","location":"l","loggers":[{"serial":"1","station":"s"}]}`,
		`spec.loggers: the list is empty`:                     `{"token":"secret://t","organization":"o","location":"l","loggers":[]}`,
		`spec.loggers.0: key "station" is missing`:            `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1"}]}`,
		`listed twice`:     `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1","station":"s"},{"serial":"1","station":"b"}]}`,
		`same measurement`: `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1","station":"s","measurement":"m"},{"serial":"2","station":"s","measurement":"m"}]}`,
		`spec.loggers.0.serial: "1,2" does not match the pattern`:    `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1,2","station":"s"}]}`,
		`spec.operation_mode: "prod" is not one of live, test, bulk`: `{` + good + `,"operation_mode":"prod"}`,
		`spec.increment: "PT30M" is shorter than PT1H`:               `{` + good + `,"increment":"PT30M"}`,
		`increment PT1H30M is not of whole hours`:                    `{` + good + `,"increment":"PT1H30M"}`,
		`spec.overlap: "P400D" is longer than P366D`:                 `{` + good + `,"overlap":"P400D"}`,
		`start and backfill`:                                         `{` + good + `,"backfill":"P1D","start":"2026-01-01T00:00:00Z"}`,
		`spec.max_windows: -1 is less than 1`:                        `{` + good + `,"max_windows":-1}`,
		`spec.base_url: this is not a URL of the form`:               `{` + good + `,"base_url":"https://a:b@c"}`,
		`spec.database: "a/b" does not match the pattern`:            `{` + good + `,"database":"a/b"}`,
		`"colour"`: `{` + good + `,"colour":1}`,
	} {
		require.ErrorContains(t, jobtest.CheckSpec(jobType, text), want, text)
	}
}

func TestPrepareHoboDescribesItselfWithoutServers(t *testing.T) {
	t.Parallel()
	jobType := extract.PrepareHoboTimeFrame(nil)
	require.Equal(t, "PrepareHoboTimeFrame", jobType.Name)
	require.Equal(t, job.WorkerExtract, jobType.Worker)
	require.Equal(t, []job.Mode{job.ModeContinuous}, jobType.Modes)
}

func TestPrepareHoboSpecProblemsAreNamed(t *testing.T) {
	t.Parallel()
	const good = `"organization":"o","location":"l"`
	jobType := extract.PrepareHoboTimeFrame(nil)
	require.NoError(t, jobtest.CheckSpec(jobType, "{"+good+`,"loggers":[{"serial":"1","measurement":"m"},{"serial":"2","measurement":"m","location":"l2"},{"serial":"3","database":"d"}]}`))
	for want, text := range map[string]string{
		`spec.organization: "O.x" does not match the pattern`:        `{"organization":"O.x","location":"l"}`,
		`spec: key "location" is missing`:                            `{"organization":"o"}`,
		`spec.operation_mode: "prod" is not one of live, test, bulk`: `{` + good + `,"operation_mode":"prod"}`,
		`spec.iteration_duration: "P1D" is longer than PT12H`:        `{` + good + `,"iteration_duration":"P1D"}`,
		`spec.loggers.0.serial: "1,2" does not match the pattern`:    `{` + good + `,"loggers":[{"serial":"1,2"}]}`,
		`listed twice`: `{` + good + `,"loggers":[{"serial":"1"},{"serial":"1"}]}`,
		`spec.loggers.0.location: "L" does not match the pattern`: `{` + good + `,"loggers":[{"serial":"1","location":"L"}]}`,
		`spec.database: "a\\b" does not match the pattern`:        `{` + good + `,"database":"a\\b"}`,
		`spec.loggers.0.database: "." does not match the pattern`: `{` + good + `,"loggers":[{"serial":"1","database":"."}]}`,
		`same measurement m`: `{` + good + `,"loggers":[{"serial":"1","measurement":"m"},{"serial":"2","measurement":"m","location":"l"}]}`,
		`"station"`:          `{` + good + `,"loggers":[{"serial":"1","station":"s"}]}`,
	} {
		require.ErrorContains(t, jobtest.CheckSpec(jobType, text), want, text)
	}
}
