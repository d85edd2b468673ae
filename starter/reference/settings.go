package reference

import (
	"cmp"
	"flag"
	"strings"

	"github.com/dendrascience/dendra-jobs/workers"
)

// workers writes the flags that all programs of workers have.
func (p *page) workers() {
	p.line("\n## Workers\n\nFlags of `backend`, `extract`, `load` and [workers of your own](adding-a-job-type.md#a-worker-of-its-own).")
	p.header("flag", "default", "meaning")
	workers.Flags().VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		p.row("`--"+strings.TrimSpace(f.Name+" "+value)+"`", cmp.Or(f.DefValue, "–"), usage)
	})
}

// settings writes the environment variables. A test compares them with those that the code reads.
func (p *page) settings() {
	p.line("\n## Settings\n\nEnvironment variables, by server. `serve`, `setup`, `doctor` and commands without `--server` read those of the workers.")
	for _, group := range []struct {
		of   string
		rows [][3]string // variables, default, meaning
	}{
		{"Temporal", [][3]string{
			{"TEMPORAL_ADDRESS", "127.0.0.1:7233", "host and port of the frontend; `dns:///NAME:PORT` for several"},
			{"TEMPORAL_NAMESPACE", "default", "namespace"},
			{"TEMPORAL_PROFILE", "default", "profile of the Temporal CLI's configuration file"},
			{"TEMPORAL_API_KEY", "", "a key; the other variables of the Temporal CLI work too"},
			{"TEMPORAL_TLS_CLIENT_CERT_PATH TEMPORAL_TLS_CLIENT_KEY_PATH", "", "PEM files of the client's certificate and key"},
			{"TEMPORAL_TLS_SERVER_CA_CERT_PATH", "", "PEM file of the authorities of the server's certificate"},
			{"TEMPORAL_DEPLOYMENT_NAME", "", "turns [Worker Versioning](upgrading.md) on; `dendra-jobs`"},
			{"TEMPORAL_WORKER_BUILD_ID", "its commit", "version of this program in its deployment"},
			{"DENDRA_PAYLOAD_KEYS", "", "file of keys: [payload encryption](servers.md#payload-encryption)"},
		}},
		{"NATS", [][3]string{
			{"DENDRA_NATS_URL", "nats://127.0.0.1:4222", "the server, or servers of a cluster with commas; may have user and password, or a token"},
			{"DENDRA_NATS_CREDS", "", "creds file, read again when it has changed"},
			{"DENDRA_NATS_NKEY", "", "instead: a file with the seed of an NKEY"},
			{"DENDRA_NATS_CERT DENDRA_NATS_KEY", "", "PEM files of the client's certificate and key"},
			{"DENDRA_NATS_CA", "", "PEM file of the authorities of the server's certificate"},
			{"DENDRA_NATS_REPLICAS", "1", "servers that hold each stream: 1, 3 or 5"},
			{"DENDRA_NATS_CLUSTER DENDRA_NATS_TAGS", "any", "cluster that holds the streams; tags that its servers must have, with commas"},
			{"DENDRA_NATS_RAW_MAX_AGE DENDRA_NATS_RAW_MAX_BYTES", "P90D, 4 GiB", "how long, and how much, raw messages are kept; the oldest go first; NATS reserves the bytes of each stream"},
			{"DENDRA_NATS_PREPARED_MAX_AGE DENDRA_NATS_PREPARED_MAX_BYTES", "P30D, 2 GiB", "the same of prepared messages"},
			{"DENDRA_NATS_QUARANTINE_MAX_AGE DENDRA_NATS_QUARANTINE_MAX_BYTES", "P365D, 512 MiB", "the same of refused messages"},
			{"DENDRA_NATS_RUN_LOGS_MAX_AGE DENDRA_NATS_RUN_LOGS_MAX_BYTES", "P7D, 1 GiB", "the same of logs of runs"},
		}},
		{"S3 store", [][3]string{
			{"DENDRA_S3_ENDPOINT", "", "URL; required by backend and load, and by extract and serve for [imports](import.md)"},
			{"DENDRA_S3_REGION", "us-east-1", "region"},
			{"DENDRA_S3_ACCESS_KEY DENDRA_S3_SECRET_KEY DENDRA_S3_SESSION_TOKEN", "", "a key, and the token of a session"},
			{"DENDRA_S3_PUBLIC_ENDPOINT", "the endpoint", "URL of the store for those who get signed URLs, if they reach it by another one"},
			{"DENDRA_S3_CREDENTIALS_FILE DENDRA_S3_PROFILE", "profile `default`", "instead: a file as the AWS CLI has it, read again when it has changed"},
		}},
		{"Platform API and Release 2", [][3]string{
			{"DENDRA_PLATFORM_URL DENDRA_PLATFORM_TOKEN", "", "of backend: the [Platform API](integrations.md) with the token of a service account"},
			{"DENDRA_RELEASE2_URL DENDRA_RELEASE2_TOKEN", "", "of backend: Release 2, for [reverse sync](reverse-sync.md); the account is of nobody else"},
			{"DENDRA_PLACES", "", "of backend, extract and serve: [where things of organizations are](operating.md#places)"},
		}},
		{"Programs of workers", [][3]string{
			{"DENDRA_SERVICE DENDRA_TAGS", "", "as the [flags](#workers) `--service` and `--tag`"},
			{"DENDRA_LOG_FORMAT", "text", "as the flag `--log-format`"},
			{"DENDRA_SECRETS_DIR", "", "folder with a file for each [secret](operating.md#secrets)"},
			{"DENDRA_SECRET_NAME", "", "the secret `secret://name` without a file: upper case, `-` as `_`; not for names with `.` or `_`"},
			{"DENDRA_IMAGE_PROCESSES", "one for each CPU", "of backend: [image processes](images.md#image-processes) at a time; a picture of over 256 MiB in memory counts as several"},
			{"DENDRA_IMAGE_MEMORY_MIB", "2304", "most that one may take; a picture gets 256 MiB and twice what its decoder needs"},
			{"DENDRA_IMAGE_SECONDS", "30", "processor time for one upload; four times as long by the clock"},
			{"DENDRA_IMAGE_ENGINE", "what there is", "`libjpeg-turbo`, without which the worker then does not start, or `go`"},
		}},
		{"Commands", [][3]string{
			{"DENDRA_SERVER DENDRA_TOKEN", "", "URL of a `starter serve` that commands call; the bearer token for it"},
			{"DENDRA_JOBS_FILE", "jobs.toml", "jobs file of `validate`, `plan` and `apply`"},
			{"COLUMNS NO_COLOR", "", "width of tables, if they do not go to a terminal; no colors"},
		}},
		{"All", [][3]string{
			{"OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "turns [traces](observing.md#traces) on"},
			{"SSL_CERT_DIR", "", "folder with PEM files of further authorities"},
		}},
	} {
		p.line("\n### %s", group.of)
		p.header("variable", "default", "meaning")
		for _, row := range group.rows {
			p.row("`"+strings.ReplaceAll(row[0], " ", "`, `")+"`", cmp.Or(row[1], "–"), row[2])
		}
	}
}
