package readmodel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// state is all that a reader knows. It is under the lock of the reader.
type state struct {
	jobs map[string]*jobState
	// latestSeen is the latest time of Temporal at which a run is known to have started or
	// ended, and lastScan when runs were looked for last.
	latestSeen time.Time
	lastScan   time.Time
	// complete says that the history was read since the last gap in the scans.
	complete bool

	// lookedAll says that each run that was under way at the beginning was looked at.
	lookedAll bool

	queues  map[string]*queueState
	workers map[string]*workerState
	// workersRead says that the workers were ever read, and services are those that the latest
	// overview knew.
	workersRead bool
	services    []client.LiveService
	loads       []*jobsv1.Load
	stations    []*jobsv1.StationOverview
	// integrations are those of the platform.
	integrations []*jobsv1.IntegrationOverview
	servers      map[string]*jobsv1.ServerHealth
	drift        driftState

	// failures are the runs that failed lately.
	failures failedRuns
	// ended are runs of toldTypes that have ended lately, by name.
	ended     map[string]*endedRun
	toldTypes []string

	// told are the records of watchdogs, and the silences.
	told alerts.State
	// fired are the times at which alerts were seen first, by name: zero if they were on
	// already. It is nil until any were looked for.
	fired map[string]time.Time
	// dropped counts the jobs that have run once and are left out.
	dropped int
	// noteOfQueues says why queues cannot be read.
	noteOfQueues string
}

func newState() state {
	return state{
		jobs: map[string]*jobState{}, queues: map[string]*queueState{}, workers: map[string]*workerState{},
		servers: map[string]*jobsv1.ServerHealth{}, failures: failedRuns{runs: map[string]failure{}},
		ended: map[string]*endedRun{},
	}
}

// notes say what is not shown.
func (s *state) notes() []string {
	var notes []string
	if s.dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d jobs that ran once and have ended are left out: the latest %d are shown", s.dropped, maxEnded))
	}
	if s.noteOfQueues != "" {
		notes = append(notes, s.noteOfQueues)
	}
	if s.drift.note != "" {
		notes = append(notes, s.drift.note)
	}
	return notes
}

// overview is the state as a message. It has no revision yet.
func (s *state) overview(now time.Time) *jobsv1.Overview {
	o := &jobsv1.Overview{ReadTime: timestamppb.New(now), Drift: s.drift.message}
	// A snapshot puts its own objects into these lists.
	o.Loads, o.Stations, o.Integrations = slices.Clone(s.loads), s.activeStations(), slices.Clone(s.integrations)
	s.services = s.services[:0]
	for _, w := range s.workers {
		if w.service != nil {
			s.services = append(s.services, *w.service)
		}
	}
	waiting := s.waitingItems()
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		if item := waiting[id]; (item == nil) != (j.waiting == nil) {
			j.message = nil
		}
		j.waiting = waiting[id]
		delete(waiting, id)
		if m := j.overview(s, now); m != nil {
			o.Jobs = append(o.Jobs, m)
		}
	}
	for _, w := range waiting {
		facts := client.WaitingFacts(w.queue, w.item)
		o.Jobs = append(o.Jobs, rowMessage(facts.Row(now)))
	}
	if len(waiting) > 0 {
		slices.SortFunc(o.Jobs, func(a, b *jobsv1.JobOverview) int { return strings.Compare(a.GetId(), b.GetId()) })
	}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if m := s.queues[name].message; m != nil {
			o.Queues = append(o.Queues, m)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.workers)) {
		if m := s.workers[id].message; m != nil {
			o.Workers = append(o.Workers, m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		o.Servers = append(o.Servers, s.servers[name])
	}
	o.Servers = append(o.Servers, influxServers(s.loads)...)
	o.UnservedTypes, o.UnservedTags = s.unserved()
	for _, j := range o.Jobs {
		if j.GetEnded() {
			o.EndedJobs++
		}
	}
	return o
}

// unserved are the types, and the tags, that jobs ask for and no live worker has: of jobs
// on schedule, and of those that run.
func (s *state) unserved() (types []*jobsv1.UnservedType, tags []*jobsv1.UnservedTags) {
	if !s.workersRead {
		return nil, nil // Nobody knows.
	}
	var needs []client.Need
	for _, j := range s.jobs {
		if j.active() && j.typeName() != "" {
			needs = append(needs, client.Need{Type: j.typeName(), Bind: j.bind()})
		}
	}
	unserved, unbound := client.Unserved(needs, s.services)
	for _, u := range unserved {
		types = append(types, &jobsv1.UnservedType{JobType: u.Type, Jobs: int32(u.Jobs)}) //nolint:gosec // Jobs of a process.
	}
	for _, u := range unbound {
		tags = append(tags, &jobsv1.UnservedTags{JobType: u.Type, Tags: u.Tags, Jobs: int32(u.Jobs)}) //nolint:gosec // The same.
	}
	return types, tags
}

// rowMessage is a job without its runs.
func rowMessage(row client.JobRow) *jobsv1.JobOverview {
	return &jobsv1.JobOverview{
		Id: row.ID, Type: row.Type, Mode: string(row.Mode), Status: EnumOf[jobsv1.JobStatus](row.Status),
		Provider: string(row.Provider), Owner: row.Owner, Queue: row.Queue, PauseReason: row.PauseReason, PauseEndTime: Timestamp(row.PauseEnd),
		Failing: FailingMessage(row.Failing), LastStartTime: Timestamp(row.LastStart), NextStartTime: Timestamp(row.Next),
		ErrorClass: row.Class, ErrorMessage: row.Error, StopReason: row.StopReason, WaitReason: row.WaitReason, Reason: row.Reason,
		UnderWay: row.UnderWay, LatestRunStatus: EnumOf[jobsv1.RunStatus](row.LatestRun), Ended: row.HasEnded(),
	}
}

// influxPrefix begins the names of those servers.
const influxPrefix = "influxdb/"

// influxServer names the server that a load writes into: influxdb/HOST:PORT.
func influxServer(load *jobsv1.Load) string { return influxPrefix + withoutScheme(load.GetAddress()) }

// withoutScheme is an address without http://.
func withoutScheme(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		return rest
	}
	return address
}

// unreachable reports whether a load is left alone since its server does not answer. One that
// refuses the load answers.
func unreachable(load *jobsv1.Load) bool {
	leftAlone := load.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_DOWN || load.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_TRYING
	return leftAlone && load.GetErrorClass() == errclass.InfluxUnreachable
}

// influxServers are the servers that loads write into, as they report them. One is down while a
// load says so: after it is back, each of its loads tries it at a time of its own.
func influxServers(loads []*jobsv1.Load) []*jobsv1.ServerHealth {
	servers := map[string]*jobsv1.ServerHealth{}
	for _, load := range loads {
		if load.GetAddress() == "" {
			continue
		}
		name, down := influxServer(load), unreachable(load)
		known := servers[name]
		if known == nil {
			known = &jobsv1.ServerHealth{Name: name, Address: load.GetAddress(), Up: true}
			servers[name] = known
		}
		if down && (known.GetUp() || load.GetDownTime().AsTime().Before(known.GetSinceTime().AsTime())) {
			known.Up, known.ErrorMessage, known.SinceTime = false, load.GetErrorMessage(), load.GetDownTime()
		}
	}
	list := slices.Collect(maps.Values(servers))
	slices.SortFunc(list, func(a, b *jobsv1.ServerHealth) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list
}
