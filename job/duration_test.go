package job_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"PT15M":                               15 * time.Minute,
		"P1D":                                 day,
		"P2W":                                 14 * day,
		"P1W2DT3H4M5.5S":                      9*day + 3*time.Hour + 4*time.Minute + 5500*time.Millisecond,
		"P0.5D":                               12 * time.Hour,
		"PT0S":                                0,
		"PT0.000000001S":                      1,
		"P0Y0M1D":                             day,
		"PT36H":                               36 * time.Hour,
		"15m":                                 15 * time.Minute,
		"1h30m":                               90 * time.Minute,
		"100ms":                               100 * time.Millisecond,
		"900":                                 15 * time.Minute,
		"0.25":                                250 * time.Millisecond,
		"1e3":                                 1000 * time.Second,
		" 5 ":                                 5 * time.Second,
		"0":                                   0,
		"P106751DT23H47M16.854775807S":        1<<63 - 1,
		"2562047h47m16.854775807s":            1<<63 - 1,
		"P1DT0.123456789S":                    day + 123456789,
		"PT1M0.9999999999S":                   time.Minute + time.Second,
		"P15250W1DT23H47M16.854775806S":       1<<63 - 2,
		"PT9007199254.740992S":                9007199254740992000,
		"P000000000000000000000000000000001D": day,
	} {
		got, err := job.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Std(), text)
	}
}

func TestParseDurationRefuses(t *testing.T) {
	t.Parallel()
	const plain = " is not a duration: write it as PT15M, 15m or 900 (seconds)"
	for text, want := range map[string]string{
		"":                           `a duration is empty: write it as PT15M, 15m or 900 (seconds)`,
		"  ":                         `a duration is empty: write it as PT15M, 15m or 900 (seconds)`,
		"-5m":                        `duration "-5m" is negative`,
		"-PT5M":                      `duration "-PT5M" is negative`,
		"-1":                         `duration "-1" is negative`,
		"P1M":                        `"P1M" counts years or months, which have no fixed length: write days or weeks, as in P30D`,
		"P1Y":                        `"P1Y" counts years or months, which have no fixed length: write days or weeks, as in P30D`,
		"P":                          `"P"` + plain,
		"PT":                         `"PT"` + plain,
		"P1DT":                       `"P1DT"` + plain,
		"P1D2D":                      `"P1D2D"` + plain,
		"PP1D":                       `"PP1D"` + plain,
		"PT5M1H":                     `"PT5M1H"` + plain,
		"PT1..5S":                    `"PT1..5S"` + plain,
		"PT-5M":                      `"PT-5M"` + plain,
		"P1H":                        `"P1H"` + plain,
		"P½D":                        `"P½D"` + plain,
		"soon":                       `"soon"` + plain,
		"15 minutes":                 `"15 minutes"` + plain,
		"0x1p4":                      `"0x1p4"` + plain,
		"5m -3m":                     `"5m -3m"` + plain,
		"NaN":                        `NaN seconds is not a duration`,
		"inf":                        `+Inf seconds is not a duration`,
		"1e10":                       `a duration of 1e+10 seconds is longer than 292 years`,
		"P200000D":                   `duration "P200000D" is longer than 292 years`,
		"P106751DT23H47M16.9S":       `duration "P106751DT23H47M16.9S" is longer than 292 years`,
		"P99999999999999999999999DT": `"P99999999999999999999999DT"` + plain,
	} {
		_, err := job.ParseDuration(text)
		require.EqualError(t, err, want, text)
	}
}

func TestDurationString(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"PT0S":           0,
		"PT15M":          15 * time.Minute,
		"P1D":            24 * time.Hour,
		"P1DT2H":         26 * time.Hour,
		"PT0.5S":         500 * time.Millisecond,
		"PT1M1.0000001S": 61*time.Second + 100,
		"P7D":            7 * 24 * time.Hour,
	} {
		require.Equal(t, want, job.Duration(d).String())
	}
}

func TestDurationJSON(t *testing.T) {
	t.Parallel()
	type holder struct {
		Wait job.Duration `json:"wait"`
	}
	for text, want := range map[string]time.Duration{
		`{"wait":"PT15M"}`: 15 * time.Minute,
		`{"wait":"15m"}`:   15 * time.Minute,
		`{"wait":900}`:     15 * time.Minute,
		`{"wait":0.5}`:     500 * time.Millisecond,
	} {
		var got holder
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.Equal(t, want, got.Wait.Std(), text)
	}
	text, err := json.Marshal(holder{job.Duration(90 * time.Second)})
	require.NoError(t, err)
	require.JSONEq(t, `{"wait":"PT1M30S"}`, string(text))

	for text, want := range map[string]string{
		`{"wait":true}`:  `true is not a duration: write it as PT15M, 15m or 900 (seconds)`,
		`{"wait":-1}`:    `a duration of -1 seconds is negative`,
		`{"wait":"P1M"}`: `"P1M" counts years or months, which have no fixed length: write days or weeks, as in P30D`,
		`{"wait":{}}`:    `{} is not a duration: write it as PT15M, 15m or 900 (seconds)`,
	} {
		var got holder
		require.EqualError(t, json.Unmarshal([]byte(text), &got), want, text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{
		"PT15M", "P1D", "15m", "900", "0.5", "P1W2DT3H4M5.5S", "P106751DT23H47M16.854775807S", "9223372036.85",
		"PT", "-5m", "P1M", "1e300", "PT1e5S", "٣", "P½D", "2562047h47m16.854775807s", "9223372036.854775",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := job.ParseDuration(text)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, d, job.Duration(0))
		again, err := job.ParseDuration(d.String())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
