package readmodel

import (
	"cmp"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// cause is a line of the table of what explains what: an alert of one rule may explain one of
// another, which comes after it in the order of rules or at least of [cause.by].
type cause struct {
	of, by jobsv1.AlertRule
	// objects are those of the alerts that would explain one.
	objects func(e *explaining, of *jobsv1.Alert) []string
}

// causes are the lines of the table, those that say most first. What is explained by something
// that is explained itself has the cause of that.
var causes = []cause{
	// A load leaves a server alone that does not answer.
	{jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, (*explaining).serverOfLoad},
	// The job of a load, and any job that needs the server, fails with a class that says so.
	{jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, (*explaining).serverOfError},
	// An iteration fails while all loads of the job are left alone, whatever the server says.
	{jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, (*explaining).loadsOfJob},
	// Messages wait for a load that is left alone, fails, or has no worker.
	{jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN, (*explaining).same},
	{jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, (*explaining).job},
	{jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND, jobsv1.AlertRule_ALERT_RULE_NO_WORKER, (*explaining).unserved},
	// A job that fails, or that nobody serves, has no success in time.
	{jobsv1.AlertRule_ALERT_RULE_JOB_LATE, jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, (*explaining).same},
	{jobsv1.AlertRule_ALERT_RULE_JOB_LATE, jobsv1.AlertRule_ALERT_RULE_NO_WORKER, (*explaining).unserved},
	{jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED, jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, (*explaining).same},
	{jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED, jobsv1.AlertRule_ALERT_RULE_NO_WORKER, (*explaining).unserved},
	// A start has no run while the run before it waits for a worker.
	{jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED, jobsv1.AlertRule_ALERT_RULE_NO_WORKER, (*explaining).unserved},
	// Nothing reads the station while its job fails, or nobody serves the job.
	{jobsv1.AlertRule_ALERT_RULE_STATION_SILENT, jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, (*explaining).job},
	{jobsv1.AlertRule_ALERT_RULE_STATION_SILENT, jobsv1.AlertRule_ALERT_RULE_NO_WORKER, (*explaining).unserved},
	// An integration is degraded while a job of it fails.
	{jobsv1.AlertRule_ALERT_RULE_INTEGRATION_FAILING, jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, (*explaining).jobsOfIntegration},
}

// needed are the servers without which errors have a class, by the class. Of those that end with a
// slash there are several: the error names the address.
var needed = map[string]string{
	errclass.InfluxUnreachable: influxPrefix, errclass.StoreUnreachable: storeServer + "/", errclass.PipelineUnreachable: natsServer,
	errclass.PlatformUnreachable: platformServer, errclass.QueueUnreachable: temporalServer,
}

// explaining adds to alerts what explains them, and what to do.
type explaining struct {
	servers []*jobsv1.ServerHealth
	// jobs, loads and alerts are by their names.
	jobs   map[string]*jobsv1.JobOverview
	loads  map[string]*jobsv1.Load
	alerts map[string]*jobsv1.Alert
	// ofJob are the loads of a job, and failing the jobs of a provider that fail.
	ofJob   map[string][]*jobsv1.Load
	failing map[string][]string
}

// explain adds to alerts of an overview what explains them, the failed run, and what to do.
func explain(o *jobsv1.Overview, list []*jobsv1.Alert) {
	e := &explaining{
		servers: o.GetServers(), jobs: byName(o.GetJobs(), (*jobsv1.JobOverview).GetId), loads: byName(o.GetLoads(), LoadName),
		alerts: byName(list, (*jobsv1.Alert).GetName), ofJob: map[string][]*jobsv1.Load{}, failing: map[string][]string{},
	}
	for _, l := range o.GetLoads() {
		e.ofJob[l.GetJobId()] = append(e.ofJob[l.GetJobId()], l)
	}
	for _, j := range o.GetJobs() {
		if j.GetFailing() != nil {
			e.failing[j.GetProvider()] = append(e.failing[j.GetProvider()], j.GetId())
		}
	}
	for _, alert := range list {
		e.addFailure(alert)
		alert.Cure = cmp.Or(e.cureOfClass(alert), cureOf(alert.GetRule()))
	}
	for _, alert := range list {
		alert.CausedBy = e.causeOf(alert)
	}
	for _, alert := range list { // To the first cause: no line leads back.
		for e.alerts[alert.GetCausedBy()].GetCausedBy() != "" {
			alert.CausedBy = e.alerts[alert.GetCausedBy()].GetCausedBy()
		}
	}
}

func byName[M any](list []M, name func(M) string) map[string]M {
	all := make(map[string]M, len(list))
	for _, one := range list {
		all[name(one)] = one
	}
	return all
}

// causeOf names the alert that explains one, "" if none does.
func (e *explaining) causeOf(alert *jobsv1.Alert) string {
	for _, c := range causes {
		if c.of != alert.GetRule() {
			continue
		}
		for _, object := range c.objects(e, alert) {
			if name := RuleWord(c.by) + "/" + object; e.alerts[name] != nil {
				return name
			}
		}
	}
	return ""
}

// addFailure names the failed run of the job that an alert is about, and its failure group.
func (e *explaining) addFailure(alert *jobsv1.Alert) {
	j := e.jobOf(alert)
	f := j.GetFailing()
	if f == nil {
		return
	}
	alert.Run = f.GetRun()
	if alert.GetRule() == jobsv1.AlertRule_ALERT_RULE_JOB_FAILING {
		alert.Failure = kindOf(j.GetId(), j.GetType(), f.GetErrorClass(), f.GetErrorMessage()).name()
	}
}

// jobOf is the job that an alert is about, nil if it is about none, or about several.
func (e *explaining) jobOf(alert *jobsv1.Alert) *jobsv1.JobOverview {
	switch alert.GetRule() {
	case jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, jobsv1.AlertRule_ALERT_RULE_JOB_LATE, jobsv1.AlertRule_ALERT_RULE_DEADLINE_MISSED,
		jobsv1.AlertRule_ALERT_RULE_STARTS_MISSED:
		return e.jobs[alert.GetObject()]
	case jobsv1.AlertRule_ALERT_RULE_LOAD_BEHIND:
		return e.jobs[e.loads[alert.GetObject()].GetJobId()]
	case jobsv1.AlertRule_ALERT_RULE_STATION_SILENT:
		id, _, _ := strings.Cut(alert.GetObject(), "/")
		return e.jobs[id]
	}
	return nil
}

// cureOfClass is what to do about the class of the error that an alert is about, "" if it is about
// none, or about one that is not in the list of errors.
func (e *explaining) cureOfClass(alert *jobsv1.Alert) string {
	class := ""
	switch alert.GetRule() {
	case jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN:
		for name, server := range needed {
			if isServer(alert.GetObject(), server) {
				class = name
			}
		}
		if alert.GetObject() == temporalServer {
			class = "" // That of the list is about queues.
		}
	case jobsv1.AlertRule_ALERT_RULE_JOB_FAILING:
		class = e.jobs[alert.GetObject()].GetFailing().GetErrorClass()
	case jobsv1.AlertRule_ALERT_RULE_BREAKER_OPEN:
		class = e.loads[alert.GetObject()].GetErrorClass()
	case jobsv1.AlertRule_ALERT_RULE_POINTS_REFUSED:
		class = e.loads[alert.GetObject()].GetRefusalClass()
	}
	found, _ := errclass.Find(class)
	return found.Cure
}

// isServer reports whether a server is the one of a name, or one of those of a prefix.
func isServer(name, server string) bool {
	prefix, several := strings.CutSuffix(server, "/")
	return name == prefix || several && strings.HasPrefix(name, server)
}

func (e *explaining) same(of *jobsv1.Alert) []string { return []string{of.GetObject()} }

// serverOfLoad is the server that does not answer a load.
func (e *explaining) serverOfLoad(of *jobsv1.Alert) []string {
	if load := e.loads[of.GetObject()]; unreachable(load) {
		return []string{influxServer(load)}
	}
	return nil
}

// serverOfError are the servers without which the job has its error.
func (e *explaining) serverOfError(of *jobsv1.Alert) []string {
	f := e.jobs[of.GetObject()].GetFailing()
	server := needed[f.GetErrorClass()]
	if server == "" {
		return nil
	}
	var names []string
	for _, s := range e.servers {
		address := withoutScheme(s.GetAddress())
		if isServer(s.GetName(), server) && (!strings.HasSuffix(server, "/") || address != "" && named(f.GetErrorMessage(), address)) {
			names = append(names, s.GetName())
		}
	}
	return names
}

// loadsOfJob are the loads of a job that have failed as it does.
func (e *explaining) loadsOfJob(of *jobsv1.Alert) []string {
	var names []string
	for _, load := range e.ofJob[of.GetObject()] {
		if load.GetErrorClass() == e.jobs[of.GetObject()].GetFailing().GetErrorClass() {
			names = append(names, LoadName(load))
		}
	}
	return names
}

// job is the job that an alert is about.
func (e *explaining) job(of *jobsv1.Alert) []string {
	if j := e.jobOf(of); j != nil {
		return []string{j.GetId()}
	}
	return nil
}

// unserved are the type of the job that an alert is about, and with the tags that it asks for.
func (e *explaining) unserved(of *jobsv1.Alert) []string {
	j := e.jobOf(of)
	if j == nil {
		return nil
	}
	return []string{j.GetType(), j.GetType() + "/" + tagsName(j.GetBind())}
}

// tagsName is tags as names of alerts have them.
func tagsName(tags map[string]string) string {
	return strings.ReplaceAll(job.TagsText(tags), ", ", ",")
}

// jobsOfIntegration are the jobs of an integration that fail.
func (e *explaining) jobsOfIntegration(of *jobsv1.Alert) []string {
	return e.failing[string(job.IntegrationProvider(of.GetObject()))]
}
