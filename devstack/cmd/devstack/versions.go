package main

import (
	"runtime/debug"
	"strings"
)

// serverModules names the modules of the servers.
var serverModules = map[string]string{
	"go.temporal.io/server":              "temporal",
	"github.com/temporalio/ui-server/v2": "web_ui",
	"github.com/nats-io/nats-server/v2":  "nats",
	"github.com/influxdata/influxdb":     "influxdb",
	"github.com/versity/versitygw":       "s3",
}

// versions returns the release of each server, from what the binary was built of.
func versions() map[string]string {
	found := make(map[string]string, len(serverModules))
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, module := range build.Deps {
		if name, ok := serverModules[module.Path]; ok {
			found[name] = strings.TrimPrefix(module.Version, "v")
		}
	}
	return found
}
