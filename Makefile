# Dendra Jobs. `make help` lists the targets.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# One set of compile flags for everything: other flags compile the servers of
# the embedded stack anew, which takes minutes. The tag gives Temporal's server a hundred
# times its own timeouts. On a busy machine they end work that is then done again, in vain. The
# other tag is of the C library of SQLite: Temporal's lists search texts.
export GOFLAGS := -trimpath -buildvcs=false -tags=TEMPORAL_DEBUG,sqlite_fts5
BUILD := $(GO) build -ldflags '-s -w'
# The version of a release.
VERSION := 0.1.0
# Workers announce the commit that they were built from; the starter tells.
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BUILD_WORKER := $(GO) build -ldflags '-s -w -X github.com/dendrascience/dendra-jobs/workers.revision=$(REVISION) \
	-X github.com/dendrascience/dendra-jobs/starter/cli.revision=$(REVISION)'

# Integration tests are those of the packages that use the embedded stack. They wait more
# than they work: PACKAGES of them run at a time, each with servers of its own and TESTS
# tests at a time. The longest packages begin.
STACKTEST := github.com/dendrascience/dendra-jobs/internal/stacktest
INTEGRATION = $(GO) list -f '{{range .XTestImports}}{{if eq . "$(STACKTEST)"}}{{$$.ImportPath}}{{end}}{{end}}' ./... | sort -r
PACKAGES ?= 2
TESTS ?= 6
# Some packages of unit tests wait as well: with two at a time, two cores are a third idle.
UNIT_PACKAGES ?= 4
# Flags of go test: make test-integration TESTFLAGS='-run Queue -v'.
TESTFLAGS ?=
# make lint has vetted the tests, and nobody debugs their binaries: without both they are
# built in two thirds of the time. What lives as shortly as a test collects garbage rarely.
# BESIDE is a prefix of what runs beside the servers of tests, as compilers and linkers do. On an
# idle machine these leave the processor to the servers; on a busy one they would get nothing.
YIELDING := nice -n 10
BESIDE ?=
TEST = GOGC=400 $(GO) test -vet=off -ldflags='-s -w'$(if $(BESIDE), -toolexec '$(BESIDE)')
TEST_STACK = $(TEST) -count=1 -p $(PACKAGES) -parallel $(TESTS)
FUZZTIME ?= 20s
# Flags of bin/dev: make dev DEV='--free-ports' or DEV='-- --temporal-port 7333'.
DEV ?=

say = @printf '\n== %s\n' '$(1)'
# Runs a build: counts the packages that are compiled, and lets everything else through. go
# says nothing while it links, which takes the largest program a minute: an empty line every
# five seconds has awk tell how far it is.
building = { (while sleep 5 >/dev/null; do echo; done) & ticks=$$!; trap "kill $$ticks" EXIT; $(1) 2>&1; } | awk ' \
	/^$$/ { if (n == last) print "   compiling or linking, " (t += 5) " s"; else print "   " n " packages compiled"; fflush(); last = n; next } \
	/^[A-Za-z0-9._\/~-]+$$/ { n++; t = 0; next } \
	{ print; fflush() } \
	END { if (n) print "   " n " packages compiled in all" }'

# Is half of the machine idle for two seconds, or at work that gives way (nice)? Where the kernel
# does not tell, it is.
idle = { head -n 1 /proc/stat; sleep 2; head -n 1 /proc/stat; } 2>/dev/null | awk ' \
	{ all = 0; for (i = 2; i <= NF; i++) all += $$i; idle[NR] = $$3 + $$5; total[NR] = all } \
	END { exit NR == 2 && 2 * (idle[2] - idle[1]) < total[2] - total[1] }'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { \
		line = sprintf("  make %-16s", $$1); \
		n = split($$2, words, " "); \
		for (i = 1; i <= n; i++) { \
			if (length(line " " words[i]) > 80) { print line; line = sprintf("%23s", "") } \
			line = line " " words[i] } \
		print line }' $(MAKEFILE_LIST)

.PHONY: build
build: programs devstack example-worker ## build all binaries into bin/
	$(call say,what makes load: bin/soak bin/bench)
	@cd soak && $(call building,$(BUILD_WORKER) -v -o ../bin/ .)
	@cd bench && $(call building,$(BUILD) -v -o ../bin/ .)

PROGRAMS := ./workers/backend ./workers/extract ./workers/load ./starter
.PHONY: programs
programs:
	$(call say,programs: bin/backend bin/extract bin/load bin/starter)
	@$(call building,$(BUILD_WORKER) -v -o bin/ $(PROGRAMS))

.PHONY: devstack
devstack:
	$(call say,embedded servers: bin/devstack bin/dev bin/vendors (the first time about 1900 packages and five minutes; seconds after that))
	@cd devstack && $(call building,$(BUILD) -v -o ../bin/ ./cmd/devstack ./cmd/dev ./cmd/vendors)

.PHONY: example-worker
example-worker:
	$(call say,a worker of another module: bin/example-worker)
	@cd docs/example-worker && $(call building,$(BUILD_WORKER) -v -o ../../bin/ .)

.PHONY: dev
dev: programs devstack ## build what it runs, start the stack and the workers, sync jobs.toml until Ctrl-C
	@exec bin/dev $(DEV)

.PHONY: test
test: bin/tools/buf ## everything that has to pass: build, lint, unit and integration tests
	@if $(idle); then $(MAKE) --no-print-directory -j4 BESIDE='$(YIELDING)' beside test-stack test-alerts test-deploy; \
		else $(MAKE) --no-print-directory lint test-unit test-integration; fi
	$(call say,all passed)

# What integration tests start. Each shares packages with the one before: they are built in turn.
.PHONY: test-programs
test-programs: bin/tools/buf
	@$(MAKE) --no-print-directory programs
	@$(MAKE) --no-print-directory devstack
	@$(MAKE) --no-print-directory example-worker

# Links and integration tests wait a good part of their time: an idle machine lints meanwhile.
.PHONY: beside
beside:
	@$(BESIDE) $(MAKE) --no-print-directory BESIDE= lint
	@$(BESIDE) $(MAKE) --no-print-directory BESIDE= test-unit

# Packages with integration tests run all their tests there: each runs once. A picture is made
# by one goroutine, and takes ten times as long under the race detector: make test-race has it.
PICTURES := github.com/dendrascience/dendra-jobs/activities/images/imaging
.PHONY: test-unit
test-unit: ## unit tests of packages without integration tests under the race detector, those of pictures and of devstack/ without it
	$(call say,unit tests under the race detector)
	@packages=$$($(GO) list ./... | grep -vxF -e "$$($(INTEGRATION))" -e $(PICTURES)); $(TEST) -p $(UNIT_PACKAGES) -short -race $$packages
	@$(TEST) -short $(PICTURES)
	@cd soak && $(TEST) -race ./...
	@cd devstack && $(TEST) ./...

# Servers that get a small part of a core answer later than calls wait. So fewer tests run at a
# time where others leave less than half of the machine idle.
.PHONY: test-integration
test-integration: ## integration tests on the embedded stack
	@if $(idle); then $(MAKE) --no-print-directory -j2 BESIDE='$(YIELDING)' test-stack test-alerts test-deploy; \
		else echo 'the machine is busy: fewer tests at a time'; \
		$(MAKE) --no-print-directory PACKAGES=1 TESTS=3 test-stack test-alerts test-deploy; fi

.PHONY: test-stack
test-stack: test-programs
	$(call say,integration tests on the embedded stack)
	@packages=$$($(INTEGRATION)); $(TEST_STACK) -timeout 20m $(TESTFLAGS) $$packages

.PHONY: axe
axe: ## install axe-core, with which the page's tests look for barriers (needs npm)
	@cd server/page/axe && npm ci --ignore-scripts

# It waits more than it works, and so goes beside the others.
.PHONY: test-alerts
test-alerts: test-programs
	$(call say,alert rules (the first time a minute for the engine of Prometheus))
	@cd alerttest && $(TEST) -count=1 ./...

.PHONY: test-deploy
test-deploy: test-programs
	$(call say,manifests of Kubernetes and units of systemd (the first time a minute for the types of Kubernetes))
	@cd deploy && $(TEST) -count=1 ./...

.PHONY: test-race
test-race: build test-unit ## unit and integration tests, all under the race detector
	$(call say,integration tests on the embedded stack under the race detector)
	@packages=$$($(INTEGRATION)); $(TEST_STACK) -race -timeout 40m $(TESTFLAGS) $$packages $(PICTURES)

.PHONY: drill
drill: build ## restore servers from backups of different moments, and show what was lost and what came twice
	$(call say,restores on the embedded stack)
	@DENDRA_TEST_SOAK=1 $(TEST) -count=1 -timeout 20m -run 'TestDrill$$' -v ./internal/endtoend | grep --line-buffered -v '^        time='

.PHONY: soak-tests
soak-tests: build ## the long form of the fault tests, under the race detector
	$(call say,long tests on the embedded stack under the race detector)
	@packages=$$($(INTEGRATION)); DENDRA_TEST_SOAK=1 $(TEST_STACK) -race -timeout 90m $(TESTFLAGS) $$packages

.PHONY: lint
lint: bin/tools/built breaking ## gofmt, golangci-lint (with go vet), workflowcheck, buf, .dockerignore
	$(call say,gofmt)
	@files=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go' 2>/dev/null || find . -name '*.go' -not -path './bin/*')); \
		if [ -n "$$files" ]; then printf 'not formatted, run gofmt -w on:\n%s\n' "$$files"; exit 1; fi
	$(call say,golangci-lint)
	@bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd devstack && ../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd devstack/sqlite && ../../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd docs/example-worker && ../../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd soak && ../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd bench && ../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd alerttest && ../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd deploy && ../bin/tools/golangci-lint run --allow-parallel-runners ./...
	@cd tools/release && ../../bin/tools/golangci-lint run --allow-parallel-runners ./...
	$(call say,workflowcheck)
	@bin/tools/workflowcheck -config workflowcheck.config.yaml ./workflows/...
	$(call say,.dockerignore and the imports of the programs)
	@$(GO) test -count=1 ./internal/container

bin/tools/built: tools/go.mod tools/go.sum
	$(call say,linters: bin/tools (the first time two minutes))
	@cd tools && $(call building,$(BUILD) -v -o ../bin/tools/ tool)
	@touch $@

bin/tools/buf: tools/buf/go.mod tools/buf/go.sum
	$(call say,buf: bin/tools/buf (the first time two minutes))
	@cd tools/buf && $(call building,$(BUILD) -v -o ../../bin/tools/ tool)
	@touch $@

bin/tools/release/built: tools/release/go.mod tools/release/go.sum tools/release/licenses/main.go
	$(call say,tools of a release: bin/tools/release (the first time a minute))
	@mkdir -p bin/tools/release
	@cd tools/release && $(call building,$(BUILD) -v -o ../../bin/tools/release/ tool ./licenses)
	@touch $@

# The contract imports buf/validate/validate.proto of it.
PROTOVALIDATE := github.com/bufbuild/protovalidate@v1.2.2
bin/proto/buf/validate/validate.proto: Makefile
	@$(GO) mod download $(PROTOVALIDATE)
	@mkdir -p bin/proto/buf/validate
	@cp -f "$$($(GO) env GOMODCACHE)/$(PROTOVALIDATE)/proto/protovalidate/buf/validate/validate.proto" bin/proto/buf/validate/

# proto/jobs.v1.binpb is the Job API that clients were built for. A change that would break
# them needs a version v2.
.PHONY: breaking
breaking: bin/tools/buf bin/proto/buf/validate/validate.proto ## does the contract still serve the clients that there are?
	$(call say,buf lint and buf breaking)
	@bin/tools/buf lint
	@bin/tools/buf breaking --against proto/jobs.v1.binpb --exclude-imports

.PHONY: contract
contract: breaking ## take the Job API as it is now as what clients were built for
	@bin/tools/buf build -o proto/jobs.v1.binpb --path proto/dendra/jobs --exclude-source-info

.PHONY: generate
generate: bin/tools/buf bin/proto/buf/validate/validate.proto ## Go code of the contracts in proto/, the OpenAPI document, script and style of the page; needs no other tools, and no registry of buf
	$(call say,generated code of proto/)
	@$(BUILD) -o bin/tools/ google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/v2/cmd/protoc-gen-connect-go
	@bin/tools/buf lint
	@bin/tools/buf format --write proto
	@find proto -name '*.pb.go' -delete -o -name '*.connect.go' -delete
	@bin/tools/buf generate
	@$(GO) run ./internal/openapi/generate > bin/jobs.openapi.json
	@mv bin/jobs.openapi.json docs/jobs.openapi.json
	@$(GO) run ./server/page/internal/bundle/generate

.PHONY: pages
pages: ## the pages and the schema in docs/ that are made from help texts
	@$(BUILD) -o bin/ ./starter
	@bin/starter schema > docs/jobs.schema.json
	@bin/starter schema --markdown > docs/job-reference.md
	@bin/starter schema --errors > docs/errors.md
	@bin/starter schema --reference > docs/reference.md

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (default 20s) each
	@for folder in $$($(GO) list -f '{{.Dir}}' ./...); do \
		for target in $$(grep -hos '^func Fuzz[A-Za-z0-9_]*' "$$folder"/*_test.go | cut -c6-); do \
			printf '\n== %s in %s\n' "$$target" ".$${folder#"$$PWD"}"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$folder"; \
		done; \
	done

.PHONY: bench
bench: build ## Temporal's latency and throughput, workers that die, plan and apply, data loggers, loads, archive, two thousand jobs every minute
	@bin/bench latency
	@bin/bench failover
	@bin/bench plan
	@bin/bench ldmp
	@bin/bench load
	@bin/bench load --stalled 1000000
	@bin/bench queue
	@bin/bench archive
	@bin/bench publish
	@bin/bench overview
	@bin/bench storm
	@bin/bench images

.PHONY: bench-images
bench-images: programs ## processor time of variants of photos, against libvips if it is installed
	@cd bench && $(BUILD) -o ../bin/ .
	@bin/bench images

# Temporal's API imports it, and it comes without the text of its licence.
UNLICENSED := github.com/nexus-rpc/nexus-proto-annotations
.PHONY: release
release: bin/tools/release/built ## programs for Linux with NOTICE, SBOMs and checksums, in bin/release; built twice and compared
	$(call say,release $(VERSION) of $(REVISION))
	@BUILD="$(BUILD_WORKER)" VERSION=$(VERSION) UNLICENSED=$(UNLICENSED) tools/release/release.sh $(PROGRAMS)

# How long there are faults, the seed of all that is random (by default of the
# time), and flags of devstack.
SOAK ?= 20m
SEED ?= 0
SOAK_STACK ?=
.PHONY: test-compose
test-compose: programs ## run docker-compose.yml with a Docker of its own: kills, networks, restarts (Debian's docker.io and debootstrap, as root)
	$(call say,docker-compose.yml for real)
	@cd deploy && DENDRA_TEST_COMPOSE=1 $(TEST) -count=1 -timeout 90m -v -run TestCompose ./composetest

.PHONY: servers
servers: ## build Temporal, NATS, InfluxDB and the S3 gateway as programs of their own (the first time ten minutes)
	$(call say,servers: bin/compose/servers)
	@cd deploy && DENDRA_BUILD_SERVERS=1 $(TEST) -count=1 -timeout 60m -run TestServersAreBuilt ./composetest

# Flags of soak cluster, such as --faults kill,cut.
CLUSTER ?=
.PHONY: soak-cluster
soak-cluster: programs servers ## load and faults on three Temporal hosts, three NATS nodes and four workers (Debian's postgresql, as root)
	@cd soak && $(call building,$(BUILD_WORKER) -v -o ../bin/ .)
	@bin/soak cluster --duration $(SOAK) --seed $(SEED) $(CLUSTER)

.PHONY: soak
soak: build ## load and faults for SOAK (default 20m), from SEED, checked by a ledger of its own
	@bin/soak --for $(SOAK) --seed $(SEED) -- $(SOAK_STACK)
	$(call say,the life of an organization under faults)
	@DENDRA_SOAK_KILLS=80 DENDRA_TEST_SEED=$(filter-out 0,$(SEED)) $(GO) test -count=1 -timeout 20m -run TestAnOrganizationUnderFaults -v ./internal/endtoend
	@$(MAKE) --no-print-directory drill
	@$(MAKE) --no-print-directory test-compose

# Telegraf is built in its module's folder, whose go.mod it needs.
TELEGRAF := github.com/influxdata/telegraf@v1.37.2
.PHONY: telegraf
telegraf: ## build Telegraf into bin/, for bin/bench load to compare with
	@$(GO) mod download $(TELEGRAF)
	@out="$$PWD/bin/telegraf"; cd "$$($(GO) env GOMODCACHE)/$(TELEGRAF)" && \
		$(BUILD) -tags custom,inputs.nats_consumer,outputs.influxdb,parsers.influx -o "$$out" ./cmd/telegraf

.PHONY: clean
clean: ## remove what was built; .dev, the data of make dev, stays
	rm -rf bin coverage.out
