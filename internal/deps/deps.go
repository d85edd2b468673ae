// Package deps pins the modules that the packages under construction need.
package deps

import (
	_ "github.com/BurntSushi/toml"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/influxdata/influxdb1-client/models"
	_ "github.com/influxdata/influxdb1-client/v2"
	_ "github.com/invopop/jsonschema"
	_ "github.com/minio/minio-go/v7"
	_ "github.com/nats-io/nats.go/jetstream"
	_ "github.com/oklog/ulid/v2"
	_ "github.com/pelletier/go-toml/v2/unstable"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "go.temporal.io/api/workflowservice/v1"
	_ "go.temporal.io/sdk/client"
	_ "go.temporal.io/sdk/contrib/envconfig"
	_ "go.temporal.io/sdk/testsuite"
	_ "go.temporal.io/sdk/worker"
	_ "golang.org/x/image/draw"
	_ "golang.org/x/term"
)
