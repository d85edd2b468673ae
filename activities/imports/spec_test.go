package imports_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestSpec(t *testing.T) {
	t.Parallel()
	jobType := imports.File(nil, nil, places.Places{})
	for spec, problem := range map[string]string{
		`{"key":"a.dat","organization":"demo","station":"angelo","time_zone":"-08:00"}`:                                         "",
		`{"key":"a.csv","organization":"demo","station":"angelo","time_zone":"Europe/Zurich","table":"t","csv":{"time":["t"]}}`: "",
		`{"key":"a.csv","organization":"demo","station":"angelo","table":"t","csv":{"time":["t"]}}`:                             "csv.time_format: the times need a time zone",
		`{"key":"a.csv","organization":"demo","station":"angelo","time_zone":"UTC","csv":{"time":["t"]}}`:                       "table is missing",
		`{"key":"a.csv","organization":"demo","station":"angelo","table":"t","csv":{"time":["t"],"time_format":"%Q"}}`:          "%Q is not known",
		`{"key":"a.csv","organization":"demo","station":"angelo","table":"t","csv":{"time":[]}}`:                                "csv.time",
		`{"key":"a.dat","organization":"demo","station":"angelo","time_zone":"Local"}`:                                          "time_zone: Local is another zone on each worker",
		`{"key":"a.dat","organization":"demo","station":"angelo","time_zone":"-15:00"}`:                                         `time_zone: "-15:00" is neither an offset`,
		`{"key":"a.dat","organization":"demo","station":"angelo","columns":[{"column":"A"},{"column":"A"}]}`:                    `columns.1: column "A" is listed twice`,
		`{"key":"a.dat","organization":"demo","station":"an{gelo"}`:                                                             "station",
		`{"key":"a.dat","organization":"demo","station":"angelo","encoding":"ebcdic"}`:                                          "encoding",
	} {
		err := jobtest.CheckSpec(jobType, spec)
		if problem == "" {
			require.NoError(t, err, spec)
		} else {
			require.ErrorContains(t, err, problem, spec)
		}
	}
}
