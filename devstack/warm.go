package main

import (
	_ "github.com/influxdata/influxdb/cmd/influxd/run"
	_ "github.com/minio/minio-go/v7"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/nats-io/nats.go/jetstream"
	_ "github.com/temporalio/ui-server/v2/server"
	_ "github.com/temporalio/ui-server/v2/server/config"
	_ "github.com/temporalio/ui-server/v2/server/server_options"
	_ "github.com/versity/versitygw/backend/meta"
	_ "github.com/versity/versitygw/backend/posix"
	_ "github.com/versity/versitygw/embedgw"
	_ "go.temporal.io/sdk/client"
	_ "go.temporal.io/server/common/authorization"
	_ "go.temporal.io/server/common/cluster"
	_ "go.temporal.io/server/common/config"
	_ "go.temporal.io/server/common/dynamicconfig"
	_ "go.temporal.io/server/common/log"
	_ "go.temporal.io/server/common/membership/static"
	_ "go.temporal.io/server/common/metrics"
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	_ "go.temporal.io/server/common/primitives"
	_ "go.temporal.io/server/schema/sqlite"
	_ "go.temporal.io/server/temporal"
)

func main() {}
