package stacktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// composeFile is what the tests read of docker-compose.yml.
type composeFile struct {
	Services map[string]composeService
	Volumes  map[string]any
}

type composeService struct {
	Image       string
	Build       *struct{ Context string }
	Entrypoint  []string
	Command     []string
	Environment map[string]string
	Volumes     []string
	Ports       []string
	Profiles    []string
	Restart     string
	Healthcheck struct {
		Test          []string
		Interval      string
		StartInterval string `yaml:"start_interval"`
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`

	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	MemLimit    string   `yaml:"mem_limit"`
	PidsLimit   int      `yaml:"pids_limit"`
	Logging     struct{ Options map[string]string }
}

// ours is the image that the Dockerfile makes.
const ours = "dendra-jobs"

// ends reports whether the service ends by itself.
func (s composeService) ends() bool { return strings.HasPrefix(s.Restart, "on-failure") }

func readCompose(t *testing.T) composeFile {
	t.Helper()
	var file composeFile
	require.NoError(t, yaml.Unmarshal([]byte(readRootFile(t, "docker-compose.yml")), &file))
	return file
}

func readRootFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(stacktest.Root(t), name))
	require.NoError(t, err)
	return string(text)
}

// script is the program of a service that runs a shell.
func (f composeFile) script(t *testing.T, service string) string {
	t.Helper()
	s := f.Services[service]
	require.Equal(t, []string{"/bin/sh", "-eu", "-c"}, s.Entrypoint, service)
	require.Len(t, s.Command, 1, service)
	return strings.ReplaceAll(s.Command[0], "$$", "$")
}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	var published, built []string
	for name, service := range file.Services {
		file.checkDependencies(t, name)
		file.checkMounts(t, name)
		for _, port := range service.Ports {
			require.Regexp(t, `^127\.0\.0\.1:`, port, name)
			published = append(published, name)
		}
		if service.Build != nil {
			built = append(built, name)
			require.Equal(t, ours, service.Image, name)
		}
		if slices.Contains(service.Entrypoint, "/bin/sh") {
			out, err := exec.CommandContext(t.Context(), "/bin/sh", "-n", "-c", file.script(t, name)).CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
		}
		for variable, value := range service.Environment {
			file.checkHosts(t, name+": "+variable, value)
		}
	}
	file.checkHosts(t, "jobs.compose.toml", readRootFile(t, "jobs.compose.toml"))
	// Workers that publish ports cannot be scaled.
	require.ElementsMatch(t, []string{"serve", "temporal-ui"}, published, "what people need, and nothing else")
	require.Len(t, built, 1, "of several that build one image, each makes the others anew")

	var settings map[string][]struct{ Value any }
	require.NoError(t, yaml.Unmarshal([]byte(readRootFile(t, "deploy/compose/dynamicconfig.yaml")), &settings))
	require.NotContains(t, settings, "system.forceSearchAttributesCacheRefreshOnRead", "a setting for tests")
	interval, err := time.ParseDuration(fmt.Sprint(settings["history.longPollExpirationInterval"][0].Value))
	require.NoError(t, err)
	require.Less(t, interval, 20*time.Second, "the server's default")
}

// exact is a version that does not move.
var exact = regexp.MustCompile(`:(?:\$\{[A-Z_]+:-)?v?\d+\.\d+\.?\d*(?:-[a-z]+)?\}?$`)

// TestComposeConfines: each service has an image of one version, no rights that it does not
// need, limits, a log that does not grow for ever, and a check that costs little.
func TestComposeConfines(t *testing.T) {
	t.Parallel()
	for name, service := range readCompose(t).Services {
		if service.Image != ours {
			require.Regexp(t, exact, service.Image, name)
		}
		require.True(t, service.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Equal(t, []string{"no-new-privileges:true"}, service.SecurityOpt, name)
		require.NotEmpty(t, service.MemLimit, name)
		require.Positive(t, service.PidsLimit, name)
		require.NotEmpty(t, service.Logging.Options["max-size"], name)
		if service.ends() || len(service.Profiles) > 0 {
			require.Empty(t, service.Healthcheck.Test, name)
			continue
		}
		require.NotEmpty(t, service.Healthcheck.Test, name)
		interval, err := time.ParseDuration(service.Healthcheck.Interval)
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, interval, 30*time.Second, "%s: Docker takes a fifth of a core for checks every two seconds", name)
		require.NotEmpty(t, service.Healthcheck.StartInterval, name)
	}
}

// TestComposePolicies: users of the S3 store that policies name are users of the store.
func TestComposePolicies(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	script := file.script(t, "s3")
	policies := regexp.MustCompile(`--bucket-policy=([a-z]+)=/etc/dendra/(\S+)`).FindAllStringSubmatch(strings.Join(file.Services["setup"].Command, " "), -1)
	require.Len(t, policies, 4)
	for _, found := range policies {
		var policy struct {
			Statement []struct {
				Principal struct{ AWS []string }
				Resource  string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(readRootFile(t, "deploy/compose/"+found[2])), &policy))
		require.NotEmpty(t, policy.Statement)
		for _, s := range policy.Statement {
			require.Regexp(t, "^arn:aws:s3:::"+found[1]+"(/|$)", s.Resource, found[2])
			for _, user := range s.Principal.AWS {
				require.Contains(t, script, "user "+user+" ", found[2])
			}
		}
	}
}

// checkDependencies: what a service waits for is there, and comes about.
func (f composeFile) checkDependencies(t *testing.T, name string) {
	t.Helper()
	for other, on := range f.Services[name].DependsOn {
		require.Contains(t, slices.Sorted(maps.Keys(f.Services)), other, "%s depends on it", name)
		switch on.Condition {
		case "service_healthy":
			require.NotEmpty(t, f.Services[other].Healthcheck.Test, "%s waits for the health of %s", name, other)
		case "service_completed_successfully":
			require.NotContains(t, []string{"always", "unless-stopped"}, f.Services[other].Restart, "%s waits for the end of %s", name, other)
		default:
			require.Equal(t, "service_started", on.Condition, name)
		}
	}
}

// checkMounts: what a service mounts is there. Docker makes a folder of what is missing: that
// is right for the folders of secrets only, which the repository has not.
func (f composeFile) checkMounts(t *testing.T, name string) {
	t.Helper()
	for _, volume := range f.Services[name].Volumes {
		source, _, _ := strings.Cut(volume, ":")
		switch {
		case source == "./secrets/"+name:
		case strings.HasPrefix(source, "."):
			_, err := os.Stat(filepath.Join(stacktest.Root(t), source))
			require.NoError(t, err, "%s mounts it", name)
		default:
			require.Contains(t, f.Volumes, source, "%s mounts it", name)
		}
	}
}

// composeHost is a host with a port.
var composeHost = regexp.MustCompile(`\b([a-z][a-z0-9-]*):\d+`)

// checkHosts: the hosts that a text names are services.
func (f composeFile) checkHosts(t *testing.T, where, text string) {
	t.Helper()
	for _, host := range composeHost.FindAllStringSubmatch(text, -1) {
		require.Contains(t, slices.Sorted(maps.Keys(f.Services)), host[1], where)
	}
}

// Temporal keeps the address of a host in its database. That of a container is another after
// down and up, and the old one is asked until it has run out.
func TestComposeTemporalKeepsItsAddress(t *testing.T) {
	t.Parallel()
	require.Equal(t, "127.0.0.1", readCompose(t).Services["temporal"].Environment["TEMPORAL_BROADCAST_ADDRESS"])
}

// TestComposeVariables: programs read the variables that they are given. The server's are
// those of its module, which has the files of its image too.
func TestComposeVariables(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.temporal.io/server")
	list.Dir = filepath.Join(stacktest.Root(t), "devstack")
	dir, err := list.Output()
	require.NoError(t, err)
	var server strings.Builder
	for _, name := range []string{"common/config/config_template_embedded.yaml", "docker/scripts/sh/entrypoint.sh"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), name))
		require.NoError(t, err)
		server.Write(text)
	}
	read := variablesRead(t)
	for name, service := range readCompose(t).Services {
		for _, variable := range slices.Sorted(maps.Keys(service.Environment)) {
			switch {
			case strings.HasPrefix(service.Image, "temporalio/server:"):
				require.Regexp(t, `\b`+variable+`\b`, server.String(), name)
			case service.Image == ours && slices.Contains([]string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}, variable):
			case service.Image == ours && strings.HasPrefix(variable, "DENDRA_SECRET_"):
			case service.Image == ours:
				require.Contains(t, read, variable, name)
			}
		}
	}
}

// variablesRead are the variables whose names are in the code of what the image is made of.
func variablesRead(t *testing.T) map[string]bool {
	t.Helper()
	name := regexp.MustCompile(`"((?:DENDRA|TEMPORAL)_[A-Z0-9_]+)"`)
	read := map[string]bool{}
	for _, folder := range []string{"activities", "internal", "starter", "workers"} {
		err := filepath.WalkDir(filepath.Join(stacktest.Root(t), folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range name.FindAllSubmatch(text, -1) {
				read[string(found[1])] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	return read
}

// TestComposePrograms: the image has the programs that its services run, and they know the
// flags.
func TestComposePrograms(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the programs; skipped with -short")
	}
	dockerfile := readRootFile(t, "Dockerfile")
	for name, service := range readCompose(t).Services {
		if service.Image != ours {
			continue
		}
		command := append(slices.Clone(service.Entrypoint), service.Command...)
		program := strings.TrimPrefix(command[0], "/bin/")
		require.Regexp(t, `go build .* -o /out/.* \./(workers/|cmd/)?`+program+`\b`, dockerfile, name)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, stacktest.Binary(t, program), append(command[1:], "--help")...).CombinedOutput()
		cancel()
		require.NoError(t, err, "%s: %s", name, out)
	}
}
