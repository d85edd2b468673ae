package temporal

import (
	"path/filepath"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
)

// clusterName is what Temporal's own development server calls its only cluster.
const clusterName = "active"

// visibilityStore is the store of the lists of workflows and schedules.
const visibilityStore = "visibility"

// sqlConfig is that of a file in the folder, with its cache in KiB below zero.
func sqlConfig(o Options, file, cache string) *config.SQL {
	pragmas := map[string]string{
		"mode": "rwc",
		// A write-ahead log survives the death of the process as a rollback
		// journal does, at a fraction of its syncs; with synchronous=normal a
		// power cut may cost the last transactions, never the file.
		"journal_mode": "wal",
		"synchronous":  "normal",
	}
	if o.NoSync {
		pragmas["synchronous"] = "off" // Where others write a lot, a sync takes seconds.
	}
	if o.Tuning == TuningLatency {
		// Fewer, larger checkpoints, and the working set of some ten thousand
		// workflows in memory.
		pragmas["wal_autocheckpoint"] = "8000" // pages of 4 KiB
		pragmas["cache_size"] = cache
		pragmas["temp_store"] = "2" // memory
	}
	return &config.SQL{
		PluginName:        sqlite.PluginName,
		DatabaseName:      filepath.Join(o.Folder, file),
		ConnectAttributes: pragmas,
		// One connection, the plugin's default: four were slower, as SQLite has one
		// writer and the others wait for it by polling.
	}
}

func serverConfig(o Options) *config.Config {
	disabled := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	return &config.Config{
		Persistence: config.Persistence{
			DefaultStore: sqlite.PluginName,
			// A file, and with it a writer and a connection, of its own: a list that
			// takes seconds holds up other lists, and no workflow.
			VisibilityStore: visibilityStore,
			// For ever the number of the first start. SQLite has one writer, so
			// more shards only add work: four were slower.
			NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{
				sqlite.PluginName: {SQL: sqlConfig(o, databaseFile, "-32768")},
				visibilityStore:   {SQL: sqlConfig(o, visibilityFile, "-16384")},
			},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address(o.FrontendPort)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			"frontend": service(o.FrontendPort),
			"history":  service(o.HistoryPort),
			"matching": service(o.MatchingPort),
			"worker":   service(o.WorkerPort),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: disabled},
		PublicClient:      config.PublicClient{HostPort: address(o.FrontendPort)},
	}
}
