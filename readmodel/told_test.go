package readmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// TestAlertsAreToldSinceTheirRecords: what silences say, and since when it is so, is the same
// for all who read, however long they have read.
func TestAlertsAreToldSinceTheirRecords(t *testing.T) {
	t.Parallel()
	first := &jobsv1.Overview{UnservedTypes: []*jobsv1.UnservedType{{JobType: "A", Jobs: 1}, {JobType: "B", Jobs: 1}, {JobType: "C", Jobs: 1}}}
	second := &jobsv1.Overview{UnservedTypes: append(first.GetUnservedTypes(), &jobsv1.UnservedType{JobType: "D", Jobs: 1})}
	record := func(object string, phase alerts.Phase) alerts.Stored {
		return alerts.Stored{Record: alerts.Record{Name: "no-worker/" + object, Phase: phase, Since: now.Add(-time.Hour)}}
	}
	told := alerts.State{
		Records:  map[string]alerts.Stored{"no-worker/B": record("B", alerts.Firing), "no-worker/C": record("C", alerts.Cleared)},
		Silences: []alerts.Silence{{Name: "quiet", Rule: "no-worker", Object: "A", End: now.Add(30 * time.Second)}},
	}
	type shown struct {
		object, silence string
		since           *timestamppb.Timestamp
	}
	of := func(list []*jobsv1.Alert) []shown {
		var all []shown
		for _, a := range list {
			all = append(all, shown{a.GetObject(), a.GetSilence(), a.GetFireTime()})
		}
		return all
	}
	later := timestamppb.New(now.Add(time.Minute))
	before, after := readmodel.AlertsOf(first, second, told, false, now)
	require.Equal(t, []shown{{"B", "", ago(time.Hour)}, {"C", "", nil}, {"A", "quiet", nil}}, of(before), "what is silenced comes last")
	require.Equal(t, []shown{{"A", "", nil}, {"B", "", ago(time.Hour)}, {"C", "", nil}, {"D", "", later}}, of(after), "the silence has ended")

	before, after = readmodel.AlertsOf(first, second, told, true, now)
	require.Equal(t, []shown{{"B", "", ago(time.Hour)}, {"C", "", ago(0)}, {"A", "quiet", ago(0)}}, of(before), "it tells people as soon as it knows")
	require.Equal(t, []shown{{"A", "", ago(0)}, {"B", "", ago(time.Hour)}, {"C", "", ago(0)}, {"D", "", later}}, of(after))
}
