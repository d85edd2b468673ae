package composetest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// base is the image that stand-ins are made of: Debian with PostgreSQL and busybox.
const base = "composetest-debian"

// packages are what it has beyond Debian's least.
const packages = "postgresql,busybox,ca-certificates,gcc,libc6-dev,libturbojpeg0,libwebp-dev"

// servers are programs of stand-ins, by their packages. They are built with the go.mod of
// devstack, so that hardly anything is compiled anew.
var servers = map[string]string{
	"influx":            "github.com/influxdata/influxdb/cmd/influx",
	"influxd":           "github.com/influxdata/influxdb/cmd/influxd",
	"nats-server":       "github.com/nats-io/nats-server/v2",
	"temporal-server":   "go.temporal.io/server/cmd/server",
	"temporal-sql-tool": "go.temporal.io/server/cmd/tools/sql",
	"ui-server":         "github.com/temporalio/ui-server/v2/cmd/server",
	"versitygw":         "github.com/versity/versitygw/cmd/versitygw",
}

// linked are their flags: InfluxDB knows its version from the linker.
const linked = "-s -w -X main.version=1.8.3"

// serverFlags leave out the tag of the embedded server, with which a lost workflow task is lost
// for two minutes, and not for ten seconds.
const serverFlags = "-trimpath -buildvcs=false"

// standIn makes an image from files, by a Dockerfile that goes on from the base image.
type standIn struct {
	programs   []string
	dockerfile string
	// modules are files and folders of Go modules, by the place in the build's folder.
	modules map[string]string
}

// standIns are by the beginning of an image's name.
var standIns = map[string]standIn{
	"golang": {dockerfile: `
COPY go /usr/local/go
ENV PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin GOPATH=/go GOTOOLCHAIN=local
`},
	"influxdb": {programs: []string{"influx", "influxd"}, dockerfile: `
COPY influx influxd influxdb.sh /usr/local/bin/
VOLUME /var/lib/influxdb
ENV HOME=/var/lib/influxdb
ENTRYPOINT ["/usr/local/bin/influxdb.sh"]
`},
	"nats": {programs: []string{"nats-server"}, dockerfile: `
COPY nats-server nats.sh /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/nats.sh"]
`},
	"postgres": {dockerfile: `
COPY postgres.sh /usr/local/bin/
RUN rm -rf /var/lib/postgresql/* && mkdir -p /var/lib/postgresql/data && chown -R postgres /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["/usr/local/bin/postgres.sh"]
`},
	"temporalio/admin-tools": {programs: []string{"temporal-sql-tool"}, modules: map[string]string{
		"schema": "go.temporal.io/server/schema",
	}, dockerfile: `
RUN useradd --uid 1000 temporal
COPY temporal-sql-tool /usr/local/bin/
COPY schema /etc/temporal/schema
USER temporal
`},
	"temporalio/server": {programs: []string{"temporal-server"}, modules: map[string]string{
		"entrypoint.sh": "go.temporal.io/server/docker/scripts/sh/entrypoint.sh",
	}, dockerfile: `
RUN useradd --uid 1000 temporal
COPY temporal-server /usr/local/bin/
COPY entrypoint.sh /etc/temporal/entrypoint.sh
RUN chmod 755 /etc/temporal/entrypoint.sh
WORKDIR /etc/temporal
USER temporal
CMD ["/etc/temporal/entrypoint.sh"]
`},
	"temporalio/ui": {programs: []string{"ui-server"}, modules: map[string]string{
		"docker.yaml": "github.com/temporalio/ui-server/v2/config/docker.yaml",
		"start.sh":    "github.com/temporalio/ui-server/v2/docker/start-ui-server.sh",
	}, dockerfile: `
RUN useradd --uid 1000 temporal
WORKDIR /home/ui-server
COPY ui-server ./
COPY docker.yaml ./config/docker.yaml
COPY start.sh ./
RUN chmod 755 start.sh
USER temporal
ENTRYPOINT ["./start.sh"]
`},
	"versity/versitygw": {programs: []string{"versitygw"}, dockerfile: `
COPY versitygw /usr/local/bin/
`},
}

// images makes the images that the file names, and that of the build, unless they are there
// or can be pulled.
func (e *engine) images(t *testing.T, names []string) {
	t.Helper()
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	names = append(names, regexp.MustCompile(`FROM (golang:\S+)`).FindStringSubmatch(string(dockerfile))[1])
	pulls := true
	for _, name := range names {
		if e.made(t, name, recipe(t, name)) {
			continue
		}
		if pulls {
			if pulls = e.command(t.Context(), "docker", "pull", "--quiet", name).Run() == nil; pulls {
				continue
			}
			t.Logf("%s cannot be pulled: stand-ins are built", name)
			e.base(t)
			buildServers(t)
		}
		began := time.Now()
		e.standIn(t, name)
		t.Logf("stand-in for %s: %s", name, time.Since(began).Round(time.Second))
	}
}

// label is what stand-ins have, with their recipe.
const label = "composetest"

// made reports whether there is an image that was pulled, or made by this recipe.
func (e *engine) made(t *testing.T, name, recipe string) bool {
	t.Helper()
	has, err := e.command(t.Context(), "docker", "image", "inspect", "--format", `{{index .Config.Labels "`+label+`"}}`, name).Output()
	return err == nil && slices.Contains([]string{"", recipe}, strings.TrimSpace(string(has)))
}

// recipe tells stand-ins of a name apart.
func recipe(t *testing.T, name string) string {
	t.Helper()
	short, _, _ := strings.Cut(name, ":")
	sum := sha256.New()
	_, _ = fmt.Fprint(sum, packages, runtime.Version(), linked, serverFlags, standIns[short])
	scripts, err := filepath.Glob("images/*.sh")
	require.NoError(t, err)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		_, _ = sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (e *engine) standIn(t *testing.T, name string) {
	t.Helper()
	short, _, _ := strings.Cut(name, ":")
	s, known := standIns[short]
	require.True(t, known, "there is no stand-in for %s", name)
	folder := t.TempDir()
	for _, program := range s.programs {
		copyFile(t, kept("servers", program), filepath.Join(folder, program))
	}
	scripts, err := filepath.Glob("images/*.sh")
	require.NoError(t, err)
	for _, script := range scripts {
		copyFile(t, script, filepath.Join(folder, filepath.Base(script)))
	}
	for place, source := range s.modules {
		copyTree(t, moduleFile(t, source), filepath.Join(folder, place))
	}
	if short == "golang" {
		copyTree(t, strings.TrimSpace(output(t, exec.CommandContext(t.Context(), "go", "env", "GOROOT"))), filepath.Join(folder, "go"))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte("FROM "+base+s.dockerfile), 0o600))
	cmd := e.command(t.Context(), "docker", "build", "--quiet", "--label", label+"="+recipe(t, name), "--tag", name, folder)
	cmd.Env = append(cmd.Env, "DOCKER_BUILDKIT=0")
	output(t, cmd)
}

// copyTree copies a file or a folder, which may be read-only.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	require.NoError(t, err)
	if info.IsDir() {
		from += "/."
	}
	output(t, exec.CommandContext(t.Context(), "cp", "--recursive", "--no-preserve=ownership", from, to))
	output(t, exec.CommandContext(t.Context(), "chmod", "--recursive", "u+w", to))
}

// moduleFile is where the machine has a file of a Go module.
func moduleFile(t *testing.T, path string) string {
	t.Helper()
	for module := path; module != "."; module = filepath.Dir(module) {
		list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
		list.Dir = filepath.Join(root, "devstack")
		if dir, err := list.Output(); err == nil {
			return filepath.Join(strings.TrimSpace(string(dir)), strings.TrimPrefix(path, module))
		}
	}
	require.Fail(t, "no module has it", path)
	return ""
}

// base makes the image that the stand-ins go on from. The certificates are those of this
// machine, with which the build downloads modules.
func (e *engine) base(t *testing.T) {
	t.Helper()
	if e.made(t, base, packages) {
		return
	}
	began := time.Now()
	folder := kept("debian")
	if has, err := os.ReadFile(folder + ".packages"); err != nil || string(has) != packages {
		require.NoError(t, os.RemoveAll(folder))
		output(t, exec.CommandContext(t.Context(), "debootstrap", "--variant=minbase", "--include="+packages, "bookworm", folder))
		require.NoError(t, os.WriteFile(folder+".packages", []byte(packages), 0o600))
	}
	tar := exec.CommandContext(t.Context(), "tar", "--create", "--directory", folder, ".")
	load := e.command(t.Context(), "docker", "import", "-", base+":bare")
	var err error
	load.Stdin, err = tar.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, tar.Start())
	output(t, load)
	require.NoError(t, tar.Wait())
	build := t.TempDir()
	copyFile(t, "/etc/ssl/certs/ca-certificates.crt", filepath.Join(build, "ca-certificates.crt"))
	// Busybox is the shell of Alpine, on which the images are that it stands in for.
	require.NoError(t, os.WriteFile(filepath.Join(build, "Dockerfile"), []byte("FROM "+base+`:bare
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN ln -sf busybox /bin/sh && ln -sf /bin/busybox /usr/local/bin/wget
COPY ca-certificates.crt /etc/ssl/certs/
`), 0o600))
	cmd := e.command(t.Context(), "docker", "build", "--quiet", "--label", label+"="+packages, "--tag", base, build)
	cmd.Env = append(cmd.Env, "DOCKER_BUILDKIT=0")
	output(t, cmd)
	t.Logf("Debian's root: %s", time.Since(began).Round(time.Second))
}

// TestServersAreBuilt is how make servers builds them for other uses.
func TestServersAreBuilt(t *testing.T) {
	t.Parallel()
	if os.Getenv("DENDRA_BUILD_SERVERS") == "" {
		t.Skip("builds servers: make servers")
	}
	buildServers(t)
}

func buildServers(t *testing.T) {
	t.Helper()
	began := time.Now()
	folder := t.TempDir()
	// What the programs import beyond devstack's own packages is added to a copy of its go.mod.
	text, err := os.ReadFile(filepath.Join(root, "devstack/go.mod"))
	require.NoError(t, err)
	text = []byte(strings.NewReplacer("=> ../", "=> "+root, "=> ./", "=> "+root+"/devstack/").Replace(string(text)))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), text, 0o600))
	copyFile(t, filepath.Join(root, "devstack/go.sum"), filepath.Join(folder, "go.sum"))
	for program, path := range servers {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-modfile", filepath.Join(folder, "go.mod"), "-mod=mod", "-ldflags", linked,
			"-o", kept("servers", program), path)
		cmd.Dir = filepath.Join(root, "devstack")
		cmd.Env = append(os.Environ(), "GOFLAGS="+serverFlags)
		output(t, cmd)
	}
	t.Logf("servers: %s", time.Since(began).Round(time.Second))
}
