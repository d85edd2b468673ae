package temporal

import (
	"fmt"
	"maps"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// Tuning names a set of server settings.
type Tuning string

// The tunings.
const (
	// TuningLatency makes one shard as quick as the machine lets it be.
	TuningLatency Tuning = "latency"
	// TuningStock has the settings of Temporal's own development server.
	TuningStock Tuning = "stock"
)

// ParseTuning reads the name of a tuning.
func ParseTuning(s string) (Tuning, error) {
	switch t := Tuning(s); t {
	case TuningLatency, TuningStock:
		return t, nil
	default:
		return "", fmt.Errorf("temporal tuning %q is not known: it is latency or stock", s)
	}
}

// historyCache bounds the states of workflows that the history service keeps in
// memory, in bytes of their stored form; in memory they are a few times as large.
const historyCache = 16 << 20

type settings = map[dynamicconfig.Key]any

func dynamicConfig(o Options) settings {
	s := settings{
		// The default of 10 list calls a second is a limit for a shared cluster.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 100,
		// The server counts entries otherwise, of which each keeps what its workflow
		// holds: memo, pending activities and timers.
		dynamicconfig.HistoryCacheSizeBasedLimit.Key():        true,
		dynamicconfig.HistoryCacheHostLevelMaxSizeBytes.Key(): historyCache,
		// A caller whose wake-up the server misses asks again after this.
		dynamicconfig.HistoryLongPollExpirationInterval.Key(): 2 * time.Second,
		// The server's own worker, which keeps schedules, may have all its pollers at the
		// queue of a process that was killed: its schedules stand still for one long poll.
		dynamicconfig.MatchingLongPollExpirationInterval.Key(): 10 * time.Second,
		// The Makefile builds the server with a hundred times its timeouts. This one is for workers
		// that are killed, so it is the server's own.
		dynamicconfig.DefaultWorkflowTaskTimeout.Key(): 10 * time.Second,
		// A new namespace can be used after this. The server's own is two seconds, and it
		// makes no more than ten a second and starts their schedules as slowly.
		dynamicconfig.NamespaceCacheRefreshInterval.Key():                                      200 * time.Millisecond,
		dynamicconfig.WorkerPerNamespaceWorkerStartRate.Key():                                  1000.0,
		dynamicconfig.FrontendNamespaceReplicationInducingAPIsRPS.Key():                        1000,
		dynamicconfig.FrontendMaxNamespaceNamespaceReplicationInducingAPIsRPSPerInstance.Key(): 100,
		dynamicconfig.FrontendGlobalNamespaceNamespaceReplicationInducingAPIsRPS.Key():         100,
	}
	if o.History > 0 {
		s[dynamicconfig.HistoryCountSuggestContinueAsNew.Key()] = o.History
	}
	if o.Tuning == TuningLatency {
		maps.Copy(s, latencySettings())
	}
	return s
}

func latencySettings() settings {
	const (
		polls = 2000    // a second; the default is 20, shared by all work of the one shard
		calls = 100_000 // a second; far more than SQLite takes, so never what throttles
	)
	return settings{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   polls,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      polls,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): polls,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   polls,

		// Timers that are set after the timer queue was read fire no earlier than
		// this after the read. The default of a second leaves room for the clocks
		// of several hosts; here there is one, and short waits would all take a
		// second.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): 10 * time.Millisecond,
		// Four partitions make a task wait for a poller of its own partition, or
		// for being forwarded; there is one matching host to spread them over.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		dynamicconfig.FrontendRPS.Key():                                  calls,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():           calls,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 2000,
		dynamicconfig.HistoryRPS.Key():                                   calls,
		dynamicconfig.MatchingRPS.Key():                                  calls,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                    calls,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                     calls,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                    calls,
		dynamicconfig.WorkerPersistenceMaxQPS.Key():                      calls,
		// Starts by schedules, for a namespace. The default of 30 is less than two
		// thousand jobs need that run every minute, which would be later and later.
		dynamicconfig.SchedulerNamespaceStartWorkflowRPS.Key(): 1000.0,
	}
}
