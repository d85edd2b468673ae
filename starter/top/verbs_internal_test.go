package top

import (
	"testing"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func TestAKeyDoesSomethingWhereItsVerbApplies(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{verbs.OneShot, verbs.Recurring, verbs.Continuous, verbs.Queued} {
		for number, name := range jobsv1.JobStatus_name {
			j := &jobsv1.JobOverview{Id: "a.b", Mode: mode, Status: jobsv1.JobStatus(number)}
			r, of := jobRow(j, clock{}), verbs.OfOverview(j)
			for key, applies := range map[string]bool{
				"p": verbs.PauseJob.Applies(of) || verbs.ResumeJob.Applies(of), "r": verbs.RunJob.Applies(of), "c": verbs.StopJob.Applies(of),
			} {
				require.Equal(t, applies, keyAction(key, paneJobs, r) != nil, "%s of a %s job that is %s", key, mode, name)
			}
		}
	}
}
