package readmodel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Limits are those of alerts. Zero means the default.
type Limits struct {
	// QueueAge is how long the oldest item of a queue may wait. Defaults to an hour.
	QueueAge time.Duration
	// LoadAge is how long the oldest message of a load may wait. Defaults to 15 minutes.
	LoadAge time.Duration
	// StationAge is how long a station may send nothing. Defaults to 24 hours.
	StationAge time.Duration
	// Stations are the ages of silence of some stations, by their names, or the begin of a
	// name and a star: the longest that fits holds. 0 means that it may be silent for ever.
	Stations map[string]time.Duration
	// Freshness is that of recurring and continuous jobs that have none of their own.
	// Defaults to no limit.
	Freshness time.Duration
	// Severities are those of rules that have another one than [Rules] says.
	Severities map[jobsv1.AlertRule]jobsv1.AlertSeverity
}

func (l Limits) withDefaults() Limits {
	l.QueueAge, l.LoadAge = cmp.Or(l.QueueAge, time.Hour), cmp.Or(l.LoadAge, 15*time.Minute)
	l.StationAge = cmp.Or(l.StationAge, 24*time.Hour)
	return l
}

// stationAge is how long a station may send nothing, 0 for ever.
func (l Limits) stationAge(name string) time.Duration {
	if own, known := l.Stations[name]; known {
		return own
	}
	age, longest := l.StationAge, 0
	for pattern, own := range l.Stations {
		if len(pattern) > longest && alerts.Match(pattern, name) {
			age, longest = own, len(pattern)
		}
	}
	return age
}

// Alerts says what of an overview needs a person, the most urgent first, and which of the
// replicas have other settings. An alert has no fire time if the overview does not tell
// since when it is so.
func Alerts(o *jobsv1.Overview, replicas []alerts.Replica, limits Limits, now time.Time) []*jobsv1.Alert {
	a := &alerting{limits: limits.withDefaults(), now: now, severities: map[jobsv1.AlertRule]jobsv1.AlertSeverity{}}
	for _, rule := range Rules() {
		a.severities[rule.Rule] = cmp.Or(limits.Severities[rule.Rule], rule.Severity)
	}
	a.servers(o)
	a.workers(o)
	owners := map[string]string{} // by the ids of jobs
	for _, j := range o.GetJobs() {
		a.owner = j.GetOwner()
		owners[j.GetId()] = a.owner
		a.job(j)
	}
	for _, q := range o.GetQueues() {
		a.owner = owners[cmp.Or(q.GetHalt().GetJobId(), q.GetRunning().GetJobId())]
		a.queue(q)
	}
	for _, s := range o.GetStations() {
		a.owner = owners[s.GetJobId()]
		a.station(s)
	}
	for _, i := range o.GetIntegrations() {
		a.owner = job.Owner{Organization: i.GetOrganization()}.String()
		a.integration(i)
	}
	a.owner = "" // What follows is everybody's.
	for _, l := range o.GetLoads() {
		a.load(l)
	}
	a.drift(o.GetDrift())
	a.settings(replicas)
	slices.SortStableFunc(a.list, func(x, y *jobsv1.Alert) int {
		return cmp.Or(cmp.Compare(x.GetSeverity(), y.GetSeverity()), cmp.Compare(x.GetRule(), y.GetRule()), strings.Compare(x.GetObject(), y.GetObject()))
	})
	explain(o, a.list)
	return a.list
}

// alerting collects alerts.
type alerting struct {
	limits     Limits
	severities map[jobsv1.AlertRule]jobsv1.AlertSeverity
	now        time.Time
	// owner is that of what is looked at.
	owner string
	list  []*jobsv1.Alert
}

func (a *alerting) add(rule jobsv1.AlertRule, object string, since time.Time, actions []jobsv1.AlertAction, format string, args ...any) {
	alert := &jobsv1.Alert{
		Name: RuleWord(rule) + "/" + object, Rule: rule, Object: object, Actions: actions, Severity: a.severities[rule], Owner: a.owner,
		Text: job.Cut(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "), maxNote),
	}
	if !since.IsZero() {
		alert.FireTime = timestamppb.New(since)
	}
	a.list = append(a.list, alert)
}

// older says that a time is known and longer ago than a limit. Since is when it became so.
func (a *alerting) older(at *timestamppb.Timestamp, limit time.Duration) (since time.Time, old bool) {
	if at == nil {
		return time.Time{}, false
	}
	since = at.AsTime().Add(limit)
	return since, a.now.After(since)
}

func timeOrZero(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func (a *alerting) servers(o *jobsv1.Overview) {
	for _, s := range o.GetServers() {
		if s.GetUp() {
			continue
		}
		if strings.HasPrefix(s.GetName(), influxPrefix) { // Loads know since when, and their errors name the address.
			a.add(jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, s.GetName(), timeOrZero(s.GetSinceTime()), nil,
				"InfluxDB does not answer: %s", cmp.Or(s.GetErrorMessage(), orUnknown(s.GetAddress())))
			continue
		}
		// Since when is for a record: the server's time is since when this process knows.
		a.add(jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, s.GetName(), time.Time{}, nil,
			"%s at %s does not answer: %s", s.GetName(), orUnknown(s.GetAddress()), orUnknown(s.GetErrorMessage()))
	}
}

func orUnknown(text string) string { return cmp.Or(text, "unknown") }

func (a *alerting) workers(o *jobsv1.Overview) {
	for _, u := range o.GetUnservedTypes() {
		a.add(jobsv1.AlertRule_ALERT_RULE_NO_WORKER, u.GetJobType(), time.Time{}, nil,
			"No live worker serves %s, which %s.", u.GetJobType(), jobsAsk(u.GetJobs()))
	}
	for _, u := range o.GetUnservedTags() {
		tags := tagsName(u.GetTags())
		a.add(jobsv1.AlertRule_ALERT_RULE_NO_WORKER, u.GetJobType()+"/"+tags, time.Time{}, nil,
			"No live worker that serves %s has the tags %s, which %s.", u.GetJobType(), tags, jobsAsk(u.GetJobs()))
	}
}

func jobsAre(n int32) string {
	if n == 1 {
		return "1 job is not"
	}
	return fmt.Sprintf("%d jobs are not", n)
}

func jobsAsk(n int32) string {
	if n == 1 {
		return "1 job needs"
	}
	return fmt.Sprintf("%d jobs need", n)
}

func (a *alerting) job(j *jobsv1.JobOverview) {
	recurs := j.GetMode() == string(job.ModeRecurring)
	goesOn := recurs || j.GetMode() == string(job.ModeContinuous)
	paused := j.GetStatus() == jobsv1.JobStatus_JOB_STATUS_PAUSED
	of := verbs.OfOverview(j)
	if f := j.GetFailing(); f != nil {
		var actions []jobsv1.AlertAction
		if goesOn { // What runs once is tried again by itself.
			actions = verbs.Actions(of, verbs.ResumeJob, verbs.RestartJob, verbs.RunJob)
			actions = actions[:min(len(actions), 1)]
		}
		a.add(jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, j.GetId(), timeOrZero(f.GetSince()), actions,
			"Job %s %s: %s", j.GetId(), failures(f.GetFailures()), orUnknown(f.GetErrorMessage()))
	}
	if !paused && goesOn {
		a.late(j)
	}
	if n := missedLately(j.GetOutcomes()); n > 0 && recurs && !paused {
		a.add(jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED, j.GetId(), time.Time{}, verbs.Actions(of, verbs.RunJob, verbs.BackfillJob),
			"Job %s has no run of its last %d starts.", j.GetId(), n)
	}
}

func failures(n int32) string {
	if n > 1 {
		return fmt.Sprintf("has failed %d times in a row", n)
	}
	return "is failing"
}

// missedLately counts the starts without a run since the latest run.
func missedLately(outcomes string) int {
	return len(outcomes) - len(strings.TrimRight(outcomes, verbs.NoRun))
}

func (a *alerting) queue(q *jobsv1.Queue) {
	actions := verbs.Actions(verbs.OfQueue(q), verbs.QueueVerbs()...)
	switch q.GetStatus() {
	case jobsv1.QueueStatus_QUEUE_STATUS_ENDED:
		a.add(jobsv1.AlertRule_ALERT_RULE_QUEUE_ENDED, q.GetName(), timeOrZero(q.GetEnd().GetEndTime()), actions,
			"Queue %s does not run: %s", q.GetName(), orUnknown(q.GetReason()))
		return
	case jobsv1.QueueStatus_QUEUE_STATUS_HALTED:
		a.add(jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED, q.GetName(), timeOrZero(q.GetHalt().GetStartTime()), actions,
			"Queue %s waits for someone to look at a failure: %s", q.GetName(), orUnknown(q.GetReason()))
		return
	case jobsv1.QueueStatus_QUEUE_STATUS_PAUSED:
		return // Someone wants it so.
	}
	if since, late := a.older(q.GetOldestTime(), a.limits.QueueAge); late && q.GetWaiting() > 0 {
		a.add(jobsv1.AlertRule_ALERT_RULE_QUEUE_BEHIND, q.GetName(), since, nil,
			"The oldest of %d items of queue %s has waited since %s.", q.GetWaiting(), q.GetName(), wording.Stamp(q.GetOldestTime().AsTime()))
	}
}

func (a *alerting) load(l *jobsv1.Load) {
	name := LoadName(l)
	actions := verbs.Actions(verbs.OfLoad(l), verbs.LoadVerbs()...)
	if l.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_DOWN || l.GetStatus() == jobsv1.LoadStatus_LOAD_STATUS_TRYING {
		a.add(jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, name, timeOrZero(l.GetDownTime()), actions,
			"Load %s is left alone, since %s failed: %s", name, orUnknown(l.GetAddress()), orUnknown(l.GetErrorMessage()))
	}
	if l.GetRefusingTime() != nil {
		a.add(jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED, name, timeOrZero(l.GetRefusingTime()), nil,
			"Load %s: %s", name, Refusals(l))
	}
	if since, late := a.older(l.GetOldestTime(), a.limits.LoadAge); late && l.GetWaiting() > 0 {
		a.add(jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, name, since, actions,
			"The oldest of %d messages of load %s has waited since %s.", l.GetWaiting(), name, wording.Stamp(l.GetOldestTime().AsTime()))
	}
}

func (a *alerting) station(s *jobsv1.StationOverview) {
	age := a.limits.stationAge(s.GetName())
	if since, silent := a.older(s.GetLastTime(), age); silent && age > 0 {
		a.add(jobsv1.AlertRule_ALERT_RULE_STATION_SILENT, s.GetName(), since, nil,
			"The latest record of %s is of %s.", s.GetName(), wording.Stamp(s.GetLastTime().AsTime()))
	}
}

func (a *alerting) integration(i *jobsv1.IntegrationOverview) {
	if !IntegrationFails(i, a.now) {
		return
	}
	a.add(jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING, i.GetName(), timeOrZero(i.GetSinceTime()), nil,
		"Integration %s is %s: %s", i.GetName(), strings.ReplaceAll(EnumWord(i.GetState().Descriptor(), i.GetState().Number()), "_", " "), orUnknown(i.GetReason()))
}

// driftObject is the object of the one alert about drift.
const driftObject = "jobs"

func (a *alerting) drift(d *jobsv1.DriftOverview) {
	if d.GetJobs() == 0 {
		return
	}
	a.add(jobsv1.AlertRule_ALERT_RULE_DRIFT, driftObject, time.Time{}, nil,
		"%s as applied, such as %s.", jobsAre(d.GetJobs()), strings.Join(d.GetJobIds()[:min(len(d.GetJobIds()), 3)], ", "))
}

// settings adds the replicas that tell people by other settings.
func (a *alerting) settings(replicas []alerts.Replica) {
	odd, usual := alerts.Differing(replicas, a.now)
	for _, r := range odd {
		a.add(jobsv1.AlertRule_ALERT_RULE_SETTINGS_DIFFER, r.Name, time.Time{}, nil,
			"Replica %s tells alerts by other settings than %s. Start both with the same watchdog file.", r.Name, usual.Name)
	}
}
