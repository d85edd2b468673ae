package extract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/job"
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
	var spec extract.HoboTimeFrameSpec
	require.NoError(t, job.DecodeSpec([]byte("{"+good+"}"), &spec))
	for want, text := range map[string]string{
		`organization "O.x"`:          `{"token":"secret://t","organization":"O.x","location":"l","loggers":[{"serial":"1","station":"s"}]}`,
		`location ""`:                 `{"token":"secret://t","organization":"o","loggers":[{"serial":"1","station":"s"}]}`,
		`token is not of the form`:    `{"token":"plain","organization":"o","location":"l","loggers":[{"serial":"1","station":"s"}]}`,
		`loggers: 0 of them`:          `{"token":"secret://t","organization":"o","location":"l","loggers":[]}`,
		`has no station`:              `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1"}]}`,
		`listed twice`:                `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1","station":"s"},{"serial":"1","station":"b"}]}`,
		`same measurement`:            `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1","station":"s","measurement":"m"},{"serial":"2","station":"s","measurement":"m"}]}`,
		`not a serial number`:         `{"token":"secret://t","organization":"o","location":"l","loggers":[{"serial":"1,2","station":"s"}]}`,
		`operation mode "prod"`:       `{` + good + `,"operation_mode":"prod"}`,
		`increment PT30M`:             `{` + good + `,"increment":"PT30M"}`,
		`increment PT1H30M`:           `{` + good + `,"increment":"PT1H30M"}`,
		`reread P400D`:                `{` + good + `,"reread":"P400D"}`,
		`start and backfill`:          `{` + good + `,"backfill":"P1D","start":"2026-01-01T00:00:00Z"}`,
		`max_windows -1`:              `{` + good + `,"max_windows":-1}`,
		`base_url is not of the form`: `{` + good + `,"base_url":"https://a:b@c"}`,
		`database "a/b" has a slash`:  `{` + good + `,"database":"a/b"}`,
		`"colour"`:                    `{` + good + `,"colour":1}`,
	} {
		var spec extract.HoboTimeFrameSpec
		require.ErrorContains(t, job.DecodeSpec([]byte(text), &spec), want, text)
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
	var spec extract.PrepareHoboSpec
	require.NoError(t, job.DecodeSpec([]byte("{"+good+`,"loggers":[{"serial":"1","measurement":"m"},{"serial":"2","measurement":"m","location":"l2"},{"serial":"3","database":"d"}]}`), &spec))
	for want, text := range map[string]string{
		`organization "O.x"`:               `{"organization":"O.x","location":"l"}`,
		`location ""`:                      `{"organization":"o"}`,
		`operation mode "prod"`:            `{` + good + `,"operation_mode":"prod"}`,
		`iteration_duration P1D is longer`: `{` + good + `,"iteration_duration":"P1D"}`,
		`not a serial number`:              `{` + good + `,"loggers":[{"serial":"1,2"}]}`,
		`listed twice`:                     `{` + good + `,"loggers":[{"serial":"1"},{"serial":"1"}]}`,
		`logger 1: location`:               `{` + good + `,"loggers":[{"serial":"1","location":"L"}]}`,
		`database "a\\b" has a`:            `{` + good + `,"database":"a\\b"}`,
		`logger 1: database "."`:           `{` + good + `,"loggers":[{"serial":"1","database":"."}]}`,
		`same measurement m`:               `{` + good + `,"loggers":[{"serial":"1","measurement":"m"},{"serial":"2","measurement":"m","location":"l"}]}`,
		`"station"`:                        `{` + good + `,"loggers":[{"serial":"1","station":"s"}]}`,
	} {
		var spec extract.PrepareHoboSpec
		require.ErrorContains(t, job.DecodeSpec([]byte(text), &spec), want, text)
	}
}
