package deploy_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/stretchr/testify/require"
)

const units = "systemd"

// programsOf are the units of a build, with the program of each.
var programsOf = map[string]string{
	"dendra-backend@": "backend", "dendra-extract@": "extract", "dendra-load@": "load", "dendra-serve@": "starter serve", "dendra-setup@": "starter setup",
}

// settings of a unit, with those that all have in common.
type settings map[string][]string

func readUnit(t *testing.T, name string) settings {
	t.Helper()
	s := settings{}
	for _, file := range []string{"dendra-@.service.d/common.conf", name + ".service"} {
		options, err := unit.DeserializeOptions(strings.NewReader(read(t, units, file)))
		require.NoError(t, err, file)
		for _, option := range options {
			s[option.Name] = append(s[option.Name], strings.ReplaceAll(option.Value, "\\\n", " "))
		}
	}
	return s
}

// one is the value of a setting that is there once.
func (s settings) one(t *testing.T, name string) string {
	t.Helper()
	require.Len(t, s[name], 1, name)
	return s[name][0]
}

func (s settings) span(t *testing.T, name string) time.Duration {
	t.Helper()
	span, err := time.ParseDuration(s.one(t, name))
	require.NoError(t, err, name)
	return span
}

// TestUnits holds the units against what the programs know.
func TestUnits(t *testing.T) {
	t.Parallel()
	for name, program := range programsOf {
		s := readUnit(t, name)
		own := map[string]bool{"CREDENTIALS_DIRECTORY": true, "LOGS_DIRECTORY": true} // Of systemd.
		for _, assignment := range s["Environment"] {
			variable, _, assigned := strings.Cut(assignment, "=")
			require.True(t, assigned, "%s: %s", name, assignment)
			if own[variable] = strings.Contains(s.one(t, "ExecStart"), "${"+variable+"}"); !own[variable] {
				checkVariable(t, name, variable)
			}
		}
		for _, used := range regexp.MustCompile(`\$\{([A-Z_]+)\}`).FindAllStringSubmatch(s.one(t, "ExecStart"), -1) {
			require.True(t, own[used[1]], "%s: %s has a value", name, used[1])
		}
		c := command{name, strings.Fields(s.one(t, "ExecStart"))}
		require.Equal(t, "/opt/dendra-jobs/%i", filepath.Dir(c.line[0]), "%s: of its build", name)
		require.Equal(t, program, c.name(), name)
		c.check(t)
		require.NotEmpty(t, s.one(t, "MemoryMax"))
		require.Equal(t, "on-failure", s.one(t, "Restart"), name)
		require.Empty(t, s["RestartPreventExitStatus"], "%s: a program of Go ends with 2 after a panic, and after the watchdog's signal", name)
		if program == "starter setup" {
			continue
		}
		require.Equal(t, "notify", s.one(t, "Type"), name)
		require.Positive(t, s.span(t, "WatchdogSec"), name)
		require.Greater(t, s.span(t, "TimeoutStopSec"), c.stopsWithin(t), name)
	}
	for _, line := range strings.Split(read(t, units, "environment"), "\n") {
		if variable, _, assigned := strings.Cut(line, "="); assigned {
			checkVariable(t, "environment", variable)
		}
	}
	workers, err := unit.DeserializeOptions(strings.NewReader(read(t, units, "dendra-workers@.target")))
	require.NoError(t, err)
	for _, option := range workers {
		if option.Name == "Wants" {
			require.ElementsMatch(t, []string{
				"dendra-setup@%i.service", "dendra-backend@%i.service", "dendra-extract@%i.service", "dendra-load@%i.service",
			}, strings.Fields(option.Value))
		}
	}
}

// analyze runs systemd-analyze on the units of a build whose programs are there.
func analyze(t *testing.T, arguments ...string) (said string, err error) {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: the units are not checked by systemd")
	}
	folder := t.TempDir()
	build := filepath.Join(folder, "build")
	require.NoError(t, os.Mkdir(build, 0o755))
	for _, name := range []string{"backend", "extract", "load", "starter"} {
		require.NoError(t, os.WriteFile(filepath.Join(build, name), nil, 0o755))
	}
	require.NoError(t, os.CopyFS(filepath.Join(folder, "units"), os.DirFS(units)))
	for name := range programsOf {
		path := filepath.Join(folder, "units", name+".service")
		text := strings.ReplaceAll(read(t, path), "/opt/dendra-jobs/%i/", build+"/")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var out bytes.Buffer
	run := exec.CommandContext(t.Context(), program, arguments...)
	run.Dir, run.Stdout, run.Stderr = filepath.Join(folder, "units"), &out, &out
	run.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+run.Dir+":")
	err = run.Run()
	return out.String(), err
}

// TestSystemdTakesTheUnits: systemd finds nothing in the units that it does not know.
func TestSystemdTakesTheUnits(t *testing.T) {
	t.Parallel()
	arguments := []string{"verify", "--man=no", "dendra-workers@1f2e3d4c5b6a.target"}
	for _, name := range slices.Sorted(maps.Keys(programsOf)) {
		arguments = append(arguments, name+"1f2e3d4c5b6a.service")
	}
	said, err := analyze(t, arguments...)
	require.NoError(t, err, said)
	require.Empty(t, said)
}

// TestUnitsAreHardened: systemd counts the exposure of each unit as 2.0 of 10 at most.
func TestUnitsAreHardened(t *testing.T) {
	t.Parallel()
	for name := range programsOf {
		said, err := analyze(t, "security", "--offline=true", "--threshold=20", "./"+name+"1f2e3d4c5b6a.service")
		require.NoError(t, err, said)
	}
}
