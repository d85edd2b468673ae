package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Releases of the servers that tests have run on.
const (
	OldestTemporal = "1.29"
	TestedTemporal = "1.32"
)

const setupFirst = "run starter setup"

// payloadKeys is the check of the keys that encrypt payloads.
const payloadKeys = "payload keys"

// temporal looks at the server and the namespace.
func (l *look) temporal(ctx context.Context) []Result {
	keys, err := temporalclient.PayloadKeys(l.Temporal)
	if err != nil {
		return []Result{wrong(payloadKeys, err.Error(), "correct the file, its owner and its mode")}
	}
	c, options, err := temporalclient.DialServer(ctx, l.Temporal)
	if err != nil {
		return []Result{wrong("address", err.Error(), "start Temporal, or set TEMPORAL_ADDRESS or --address")}
	}
	l.client, l.keys = c, keys.IDs()
	found := "temporal at " + options.HostPort
	if !temporalclient.AddressGiven(l.Temporal) {
		found += ", the usual address: none is set"
	}
	results := []Result{ok("address", found), l.temporalVersion(ctx)}
	if len(l.keys) > 0 {
		results = append(results, ok(payloadKeys, fmt.Sprintf("%s encrypts; keys in %s: %d", l.keys[0], keys.File(), len(l.keys))))
	}
	if l.namespace, err = temporalclient.DescribeNamespace(ctx, c, options.Namespace); err != nil {
		_, missing := errors.AsType[*serviceerror.NamespaceNotFound](err)
		what := "look at its log"
		if missing {
			what = setupFirst + ", or set TEMPORAL_NAMESPACE or --namespace"
		}
		return append(results, wrong("namespace", temporalclient.Explain(options, err).Error(), what))
	}
	return append(results,
		ok("namespace", options.Namespace),
		l.retention(),
		l.attributes(),
		l.services(),
		l.scheduleEngine(ctx),
	)
}

func (l *look) temporalVersion(ctx context.Context) Result {
	version, err := temporalclient.Version(ctx, l.client)
	switch {
	case err != nil:
		return wrong("version", "the server does not tell its version: "+err.Error(), "look at its log")
	case before(version, OldestTemporal):
		return wrong("version", version, fmt.Sprintf("upgrade it to %s; nothing older than %s was tested", TestedTemporal, OldestTemporal))
	}
	// Not every server tells: it is an operator's question.
	cluster, err := l.client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err == nil && cluster.GetHistoryShardCount() > 0 {
		version += fmt.Sprintf(", history shards: %d, on %s", cluster.GetHistoryShardCount(), cluster.GetPersistenceStore())
	}
	return ok("version", version)
}

// before reports whether a release comes before another one, by major and minor number. One
// that has no numbers does not.
func before(version, than string) bool {
	var major, minor, thanMajor, thanMinor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(than, "%d.%d", &thanMajor, &thanMinor); err != nil {
		return false
	}
	return major < thanMajor || major == thanMajor && minor < thanMinor
}

// shortRetention is less than people want to know of their runs.
const shortRetention = 7 * 24 * 60 * 60 // seconds

func (l *look) retention() Result {
	found := "runs are known for " + job.Duration(l.namespace.Retention).String()
	if l.namespace.Retention.Seconds() < shortRetention {
		return wrong("retention", found, "run starter setup --retention P30D: a one-shot that is applied later than that runs again")
	}
	return ok("retention", found)
}

func (l *look) attributes() Result {
	all, missing := len(contract.AttributeKeys()), l.namespace.MissingAttributes()
	switch err := l.namespace.CheckTypes(); {
	case err != nil:
		return wrong("search attributes", err.Error(), "use another namespace")
	case l.namespace.AttributesUnknown():
		return unset("search attributes", "the server does not tell which there are")
	case len(missing) > 0:
		return wrong("search attributes", fmt.Sprintf("%d of %d; missing: %s", all-len(missing), all, strings.Join(missing, ", ")), setupFirst)
	}
	return ok("search attributes", fmt.Sprintf("%d of %d", all, all))
}

func (l *look) services() Result {
	if l.namespace.StandaloneActivities {
		return ok("services", "the server has standalone activities")
	}
	return wrong("services", "the server has no standalone activities: workers are not listed, bind is refused, job types of other programs are unknown",
		"upgrade it to "+temporalclient.ServicesSince+", or turn activity.enableStandalone on; the rest works")
}

// someSchedules are how many schedules are looked at.
const someSchedules = 20

// scheduleEngine looks at which of the server's two engines has the schedules: that of a
// workflow for each, or the newer one, which may start two runs at once under skip.
func (l *look) scheduleEngine(ctx context.Context) Result {
	const check = "schedule engine"
	service := l.client.WorkflowService()
	list, err := service.ListSchedules(ctx, &workflowservice.ListSchedulesRequest{Namespace: l.namespace.Name, MaximumPageSize: someSchedules})
	if err != nil {
		return wrong(check, "schedules cannot be listed: "+err.Error(), "look at the server's log")
	}
	if len(list.GetSchedules()) == 0 {
		return unset(check, "not known before there is a schedule")
	}
	newer := 0
	for _, s := range list.GetSchedules() {
		_, err := l.client.DescribeWorkflowExecution(ctx, "temporal-sys-scheduler:"+s.GetScheduleId(), "")
		_, gone := errors.AsType[*serviceerror.NotFound](err)
		switch {
		case gone:
			newer++
		case err != nil:
			return wrong(check, "a schedule cannot be described: "+err.Error(), "look at the server's log")
		}
	}
	if newer > 0 {
		return wrong(check, fmt.Sprintf("CHASM, of %d in %d schedules: it may start two runs of a job at once", newer, len(list.GetSchedules())),
			"turn history.enableCHASMSchedulerCreation off and make the schedules again")
	}
	return ok(check, fmt.Sprintf("workflows (schedules: %d)", len(list.GetSchedules())))
}

// activityQueue is the kind of queue that the clock of Temporal is read from.
const activityQueue = enumspb.TASK_QUEUE_TYPE_ACTIVITY
