package exports_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestSpec changes one key of a spec at a time. A sentence says what is wrong with it.
func TestSpec(t *testing.T) {
	t.Parallel()
	jobType := exports.Datastreams(nil, nil, places.Places{})
	good := map[string]any{
		"organization": "demo", "stations": []string{"angelo"}, "location": "common1",
		"start": "2026-03-01T00:00:00Z", "end": "2026-04-01T00:00:00Z",
	}
	check := func(change string) error {
		spec := maps.Clone(good)
		require.NoError(t, json.Unmarshal([]byte(change), &spec))
		for key, value := range spec {
			if value == nil {
				delete(spec, key)
			}
		}
		return jobtest.CheckSpec(jobType, string(job.EncodeJSON(spec)))
	}
	for _, change := range []string{
		`{}`, `{"format":"parquet"}`, `{"format":"netcdf"}`, `{"compression":"zip"}`, `{"aggregate":"mean","every":"PT10M"}`,
		`{"aggregate":"count","every":"P1D"}`, `{"aggregate":"max","every":"P7D","start":"2026-03-05T00:00:00Z","end":"2026-04-02T00:00:00Z"}`,
		`{"start":"2026-03-01T00:00:00+02:00"}`, `{"link_life":"PT1M"}`, `{"database":"org_5b0f155746a1b867a114e030"}`, `{"start":"1826-05-01T00:00:00Z"}`,
		`{"tables":["tenmin"],"fields":["AT_C_Avg"],"mirror":"west","licence":"CC-BY-4.0","part_points":100,"dry_run":true}`,
	} {
		require.NoError(t, check(change), change)
	}
	bad := map[string]string{
		`{"organization":null}`:                 `organization`,
		`{"organization":""}`:                   `organization`,
		`{"organization":"a b"}`:                `organization`,
		`{"organization":"../x"}`:               `organization`,
		`{"organization":7}`:                    `organization`,
		`{"stations":null}`:                     `stations`,
		`{"stations":[]}`:                       `stations`,
		`{"stations":"angelo"}`:                 `stations`,
		`{"stations":["a","a"]}`:                `stations`,
		`{"stations":[7]}`:                      `stations`,
		`{"tables":["a","a"]}`:                  `tables`,
		`{"tables":{}}`:                         `tables`,
		`{"fields":["a","a"]}`:                  `fields`,
		`{"fields":[null]}`:                     `fields`,
		`{"location":null}`:                     `location`,
		`{"location":"Common"}`:                 `location`,
		`{"location":"a.b"}`:                    `location`,
		`{"mirror":"a b"}`:                      `mirror`,
		`{"database":"a/b"}`:                    `database`,
		`{"database":".hidden"}`:                `database`,
		`{"start":null}`:                        `start`,
		`{"start":"yesterday"}`:                 `start`,
		`{"start":"2026-03-01"}`:                `start`,
		`{"start":"2026-02-30T00:00:00Z"}`:      `start`,
		`{"start":"2026-03-01T00:00:00"}`:       `start`,
		`{"start":"2026-04-01T00:00:00Z"}`:      `end: 2026-04-01T00:00:00Z is not after start`,
		`{"start":"2027-01-01T00:00:00Z"}`:      `end: 2026-04-01T00:00:00Z is not after start`,
		`{"start":"1600-01-01T00:00:00Z"}`:      `start and end: InfluxDB has times from 1678 to 2261`,
		`{"start":"0001-01-01T00:00:00Z"}`:      `start and end: InfluxDB has times from 1678 to 2261`,
		`{"start":"1700-01-01T00:00:00Z"}`:      `end: more than 200 years after start`,
		`{"end":null}`:                          `end`,
		`{"end":"2300-01-01T00:00:00Z"}`:        `start and end: InfluxDB has times from 1678 to 2261`,
		`{"end":"2026-13-01T00:00:00Z"}`:        `end`,
		`{"end":1}`:                             `end`,
		`{"aggregate":"median","every":"PT1H"}`: `aggregate`,
		`{"aggregate":"MEAN","every":"PT1H"}`:   `aggregate`,
		`{"aggregate":"mean"}`:                  `every is missing: the function needs a step`,
		`{"every":"PT1H"}`:                      `aggregate is missing: a step needs a function`,
		`{"aggregate":"mean","every":"PT7H"}`:   `every: PT7H is neither a part of a day without a rest nor whole days`,
		`{"aggregate":"mean","every":"P1DT1H"}`: `every: P1DT1H is neither a part of a day without a rest nor whole days`,
		`{"aggregate":"mean","every":"PT1.5S"}`: `every: PT1.5S is neither a part of a day without a rest nor whole days`,
		`{"aggregate":"mean","every":"PT0S"}`:   `every`,
		`{"aggregate":"mean","every":"P1M"}`:    `every`,
		`{"aggregate":"mean","every":"hourly"}`: `every`,
		`{"aggregate":"mean","every":"P9999D"}`: `every`,
		`{"aggregate":"mean","every":"P7D","end":"2026-04-02T00:00:00Z"}`:    `start: 2026-03-01T00:00:00Z is no multiple of P7D since 1970`,
		`{"aggregate":"mean","every":"PT1H","end":"2026-03-31T12:30:00Z"}`:   `end: 2026-03-31T12:30:00Z is no multiple of PT1H since 1970`,
		`{"aggregate":"mean","every":"PT1H","start":"2026-03-01T00:00:01Z"}`: `start: 2026-03-01T00:00:01Z is no multiple of PT1H since 1970`,
		`{"format":"xlsx"}`:       `format`,
		`{"format":"CSV"}`:        `format`,
		`{"compression":"bzip2"}`: `compression`,
		`{"compression":1}`:       `compression`,
		`{"licence":7}`:           `licence`,
		`{"link_life":"P8D"}`:     `link_life`,
		`{"link_life":"PT1S"}`:    `link_life`,
		`{"link_life":"forever"}`: `link_life`,
		`{"part_points":99}`:      `part_points`,
		`{"part_points":1e9}`:     `part_points`,
		`{"part_points":"many"}`:  `part_points`,
		`{"dry_run":"yes"}`:       `dry_run`,
		`{"measurement":"m"}`:     `measurement`,
	}
	require.GreaterOrEqual(t, len(bad), 60)
	for change, problem := range bad {
		err := check(change)
		require.ErrorContains(t, err, problem, change)
		require.NotContains(t, err.Error(), "\n", change)
	}
}
