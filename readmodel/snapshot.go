package readmodel

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Snapshot is what a reader knew at a moment. It never changes, and neither does anything
// in it: it is for all.
type Snapshot struct {
	// Overview has up to 100 outcomes of each job.
	Overview *jobsv1.Overview
}

func newSnapshot(o *jobsv1.Overview) *Snapshot { return &Snapshot{o} }

// Revision is that of the overview.
func (s *Snapshot) Revision() int64 { return s.Overview.GetRevision() }

// DefaultRuns is how many outcomes of a job are shown unless someone asks for more.
const DefaultRuns = 30

// maxOutcomes is how many outcomes of a job are kept.
const maxOutcomes = 100

// Message is the overview with the latest outcomes of each job; 0 means [DefaultRuns].
func (s *Snapshot) Message(runs int) *jobsv1.Overview {
	return cut(s.Overview, s.Overview.GetJobs(), runs)
}

// cut is an overview with some jobs, and of each so many outcomes.
func cut(o *jobsv1.Overview, jobs []*jobsv1.JobOverview, runs int) *jobsv1.Overview {
	if runs == 0 {
		runs = DefaultRuns
	}
	m := &jobsv1.Overview{
		Revision: o.GetRevision(), ReadTime: o.GetReadTime(), Alerts: o.GetAlerts(), Servers: o.GetServers(), Queues: o.GetQueues(),
		Loads: o.GetLoads(), Workers: o.GetWorkers(), UnservedTypes: o.GetUnservedTypes(), UnservedTags: o.GetUnservedTags(),
		Stations: o.GetStations(), Integrations: o.GetIntegrations(), Drift: o.GetDrift(), Notes: o.GetNotes(),
		EndedJobs: o.GetEndedJobs(), Jobs: make([]*jobsv1.JobOverview, len(jobs)),
	}
	for i, j := range jobs {
		if n := len(j.GetOutcomes()); n > runs {
			j = proto.CloneOf(j)
			j.Outcomes = j.GetOutcomes()[n-runs:]
			if len(j.GetDurations()) == n {
				j.Durations = j.GetDurations()[n-runs:]
			}
		}
		m.Jobs[i] = j
	}
	return m
}

// Delta is what is other than in an earlier snapshot; all of it if that is nil.
func (s *Snapshot) Delta(before *Snapshot, runs int) *jobsv1.WatchOverviewResponse {
	if before == nil {
		return &jobsv1.WatchOverviewResponse{Overview: s.Message(runs)}
	}
	m := &jobsv1.WatchOverviewResponse{Delta: true}
	was, is := before.Overview, s.Overview
	jobs, removed := diff(was.GetJobs(), is.GetJobs(), (*jobsv1.JobOverview).GetId)
	m.Overview, m.RemovedJobs = cut(is, jobs, runs), removed
	m.Overview.Queues, m.RemovedQueues = diff(was.GetQueues(), is.GetQueues(), (*jobsv1.Queue).GetName)
	m.Overview.Loads, m.RemovedLoads = diff(was.GetLoads(), is.GetLoads(), LoadName)
	m.Overview.Workers, m.RemovedWorkers = diff(was.GetWorkers(), is.GetWorkers(), WorkerName)
	m.Overview.Stations, m.RemovedStations = diff(was.GetStations(), is.GetStations(), (*jobsv1.StationOverview).GetName)
	m.Overview.Integrations, m.RemovedIntegrations = diff(was.GetIntegrations(), is.GetIntegrations(), (*jobsv1.IntegrationOverview).GetName)
	return m
}

// LoadName names a load: LOCATION/FLOW/MIRROR.
func LoadName(l *jobsv1.Load) string {
	return l.GetLocation() + "/" + l.GetFlow() + "/" + l.GetMirror()
}

// WorkerName names a worker: TYPE@NAME.
func WorkerName(w *jobsv1.Worker) string { return w.GetType() + "@" + w.GetName() }

// diff compares two lists that are ordered by names.
func diff[M proto.Message](was, is []M, name func(M) string) (changed []M, removed []string) {
	for i, n := 0, 0; i < len(was) || n < len(is); {
		var order int
		switch {
		case i == len(was):
			order = 1
		case n == len(is):
			order = -1
		default:
			order = cmp.Compare(name(was[i]), name(is[n]))
		}
		switch {
		case order < 0:
			removed = append(removed, name(was[i]))
			i++
		case order > 0:
			changed = append(changed, is[n])
			n++
		default:
			if !same(was[i], is[n]) {
				changed = append(changed, is[n])
			}
			i, n = i+1, n+1
		}
	}
	return changed, removed
}

// same reports whether two messages are equal. Those that did not change are mostly the same
// object.
func same[M proto.Message](a, b M) bool { return any(a) == any(b) || proto.Equal(a, b) }

// adopt puts the objects of the snapshot in place of equal ones, so that later comparisons
// are quick. It reports whether all is equal but the time.
func (s *Snapshot) adopt(next *jobsv1.Overview) bool {
	o := s.Overview
	all := adopted(o.GetJobs(), next.GetJobs(), (*jobsv1.JobOverview).GetId)
	all = adopted(o.GetQueues(), next.GetQueues(), (*jobsv1.Queue).GetName) && all
	all = adopted(o.GetLoads(), next.GetLoads(), LoadName) && all
	all = adopted(o.GetWorkers(), next.GetWorkers(), WorkerName) && all
	all = adopted(o.GetStations(), next.GetStations(), (*jobsv1.StationOverview).GetName) && all
	all = adopted(o.GetIntegrations(), next.GetIntegrations(), (*jobsv1.IntegrationOverview).GetName) && all
	return all && equalAll(o.GetAlerts(), next.GetAlerts()) && equalAll(o.GetServers(), next.GetServers()) &&
		equalAll(o.GetUnservedTypes(), next.GetUnservedTypes()) && equalAll(o.GetUnservedTags(), next.GetUnservedTags()) &&
		proto.Equal(o.GetDrift(), next.GetDrift()) && slices.Equal(o.GetNotes(), next.GetNotes())
}

func adopted[M proto.Message](was, is []M, name func(M) string) bool {
	all := len(was) == len(is)
	i := 0
	for n := range is {
		for i < len(was) && name(was[i]) < name(is[n]) {
			i++
		}
		if i < len(was) && name(was[i]) == name(is[n]) && same(was[i], is[n]) {
			is[n] = was[i]
		} else {
			all = false
		}
	}
	return all
}

func equalAll[M proto.Message](a, b []M) bool { return slices.EqualFunc(a, b, same[M]) }

// oneLine is the text of an error; joined errors have one on each line.
func oneLine(err error) string {
	return job.Cut(strings.ReplaceAll(err.Error(), "\n", "; "), maxNote)
}

// maxNote bounds a note in bytes.
const maxNote = 500
