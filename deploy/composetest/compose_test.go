package composetest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// away is how long a container is without its network.
const away = 20 * time.Second

// TestCompose: from nothing to variants of photos, items of a queue, points, and the page; and
// then everything that may happen to containers. What was acknowledged is done in the end.
func TestCompose(t *testing.T) {
	t.Parallel()
	needs(t)
	p := newProject(t, startEngine(t))
	p.up(t, "--build")
	p.token = regexp.MustCompile(`dendra_jobs_\S+`).FindString(p.run(t, "logs", "--no-log-prefix", "token"))
	require.NotEmpty(t, p.token, "the log of the service token")
	require.Equal(t, http.StatusOK, p.get(t, "/", p.token))
	require.NotEqual(t, http.StatusOK, p.get(t, "/metrics", "wrong"))

	putPhotos(t, p)
	l := startLedger(t, p)
	l.goesOn(t)
	p.points(t)
	p.finds(t)
	p.hasOwnUsers(t)
	p.secrets(t)
	p.scales(t)
	l.longestGap()
	p.upgrade(t)
	l.goesOn(t)
	t.Logf("upgrade: longest gap of acknowledgements %s", l.longestGap())

	for _, service := range p.services {
		l.longestGap()
		up := p.kill(t, service)
		l.goesOn(t)
		t.Logf("%s was killed: healthy after %s, longest gap of acknowledgements %s", service, up, l.longestGap())
	}
	p.points(t)
	for _, service := range p.services {
		l.longestGap()
		p.cutOff(t, service)
		l.goesOn(t)
		t.Logf("%s was off the network for %s: longest gap of acknowledgements %s", service, away, l.longestGap())
	}
	p.healthy(t)
	p.points(t)

	p.run(t, "restart")
	p.up(t)
	l.goesOn(t)
	t.Logf("restart: longest gap of acknowledgements %s", l.longestGap())
	p.run(t, "down")
	p.up(t)
	began := time.Now()
	l.goesOn(t)
	t.Logf("down and up: three items %s after it was healthy", time.Since(began).Round(100*time.Millisecond))
	p.points(t)
	l.end()
	l.check(t)
}

// count is how many points there are.
func (p *project) count(t *testing.T) (points int) {
	t.Helper()
	out := p.run(t, "exec", "--no-TTY", "influxdb", "influx", "-database", "common1", "-format", "json", "-execute", "SELECT COUNT(*) FROM /.*/")
	var answer struct {
		Results []struct {
			Series []struct{ Values [][]any }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
	for _, series := range answer.Results[0].Series {
		for _, value := range series.Values[0][1:] {
			n, _ := value.(float64)
			points += int(n)
		}
	}
	return points
}

// points waits for new points of the development vendors, through extract, prepare and load.
func (p *project) points(t *testing.T) {
	t.Helper()
	before := p.count(t)
	p.until(t, 3*time.Minute, func() error {
		if after := p.count(t); after <= before {
			return fmt.Errorf("there are still %d points", before)
		}
		return nil
	})
}

// finds: workers have the image's revision and names of containers, and image processes find
// its libraries; doctor is content.
func (p *project) finds(t *testing.T) {
	t.Helper()
	for _, w := range p.workers(t) {
		require.Equal(t, revision, w.Revision, w.Name)
		require.Regexp(t, `^dendra-jobs-(backend|extract|load)-1$`, w.Name)
		if strings.Contains(w.Name, "backend") {
			require.Equal(t, "libjpeg-turbo+libwebp", w.Tags["images"])
		}
	}
	out, err := p.in(t.Context(), "run", "--rm", "--no-TTY", "starter", "doctor").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

type worker struct {
	Name, Revision, Status string
	Tags                   map[string]string
}

// workers are those that live.
func (p *project) workers(t *testing.T) (live []worker) {
	t.Helper()
	for _, w := range ask[struct{ Workers []worker }](t, p, "workers").Workers {
		if !strings.Contains(w.Status, "LOST") {
			live = append(live, w)
		}
	}
	return live
}

// hasOwnUsers: the keys of one purpose do not open the buckets of another.
func (p *project) hasOwnUsers(t *testing.T) {
	t.Helper()
	for user, bucket := range map[string]string{"load": "uploads", "upload": "archive", "backend": "uploads", "serve": "media"} {
		out, err := p.in(t.Context(), "run", "--rm", "--no-TTY", "--env", "DENDRA_S3_ACCESS_KEY="+user, "--env", "DENDRA_S3_SECRET_KEY=dendra-dev-"+user,
			"starter", "doctor", "--only", "s3", "--bucket", bucket).CombinedOutput()
		require.Error(t, err, "%s writes into %s: %s", user, bucket, out)
		require.Contains(t, string(out), "wrong", "%s", out)
	}
}

// secrets: a secret of mode 0600 is read if it belongs to the image's user. If it belongs to
// another, the job says so, and is not tried again.
func (p *project) secrets(t *testing.T) {
	t.Helper()
	path := filepath.Join(p.folder, "secrets/extract/vendor")
	require.NoError(t, os.WriteFile(path, []byte("hosts: http://vendors:8090\n\nhobolink-dev-token\n"), 0o600))
	job := []string{"run", "--type", "extract_hobo_time_frame", "--spec", `{"token": "secret://vendor", "base_url": "http://vendors:8090",
		"organization": "demo", "location": "common1", "loggers": [{"serial": "21234001", "station": "ridge"}]}`}
	out, err := p.starter(t.Context(), job...).CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "has mode 0600 and belongs to uid 0; this worker runs as uid 65532")
	failed := ask[runs](t, p, "runs", "list", "--error-class", "Secret").Runs
	require.Len(t, failed, 1)
	require.Equal(t, 1, failed[0].Attempts)
	require.NoError(t, os.Chown(path, 65532, 65532))
	output(t, p.starter(t.Context(), job...))
}

// scales: three workers of a type, each with its own name, and back.
func (p *project) scales(t *testing.T) {
	t.Helper()
	for _, replicas := range []int{3, 1} {
		p.up(t, "--no-recreate", "--scale", fmt.Sprintf("extract=%d", replicas))
		p.until(t, time.Minute, func() error {
			var names []string
			for _, w := range p.workers(t) {
				if strings.HasPrefix(w.Name, "dendra-jobs-extract-") {
					names = append(names, w.Name)
				}
			}
			if len(names) != replicas {
				return fmt.Errorf("%d workers, not %d: %s", len(names), replicas, names)
			}
			return nil
		})
	}
}

// buildID is how much of a revision is a build.
const buildID = 12

// upgrade brings a new build in beside the old one, as docs/deploying.md says.
func (p *project) upgrade(t *testing.T) {
	t.Helper()
	p.revision = nextRevision
	p.run(t, "build")
	output(t, p.next(t.Context(), "up", "--detach"))
	promote := func() error {
		out, err := p.starter(t.Context(), "deploy", "promote", nextRevision[:buildID]).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	p.until(t, 2*time.Minute, promote)
	old := func() error {
		builds := ask[struct {
			Deployment struct {
				Builds []struct {
					ID   string `json:"id"`
					Held string
				}
			}
		}](t, p, "deploy", "status").Deployment.Builds
		for _, b := range builds {
			if b.ID == revision[:buildID] && b.Held == "" {
				return nil
			}
		}
		return fmt.Errorf("the old build may not stop: %v", builds)
	}
	p.until(t, 5*time.Minute, old)
	p.up(t)
	output(t, p.next(t.Context(), "down"))
	p.until(t, time.Minute, func() error {
		live := p.workers(t)
		for _, w := range live {
			if w.Revision != nextRevision {
				return fmt.Errorf("%s has still revision %s", w.Name, w.Revision)
			}
		}
		if len(live) != len(workerTypes) {
			return fmt.Errorf("%d workers live", len(live))
		}
		return nil
	})
}

// container is the id of a service's container.
func (p *project) container(t *testing.T, service string) string {
	t.Helper()
	return strings.TrimSpace(p.run(t, "ps", "--quiet", service))
}

// kill ends the process of a container, and waits until Docker has started it again. It says
// how long that took.
func (p *project) kill(t *testing.T, service string) time.Duration {
	t.Helper()
	id := p.container(t, service)
	state := func() (pid int, started string) {
		fields := strings.Fields(p.docker(t, "inspect", "--format", "{{.State.Pid}} {{.State.StartedAt}}", id))
		pid, err := strconv.Atoi(fields[0])
		require.NoError(t, err)
		return pid, fields[1]
	}
	pid, before := state()
	began := time.Now()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	p.until(t, time.Minute, func() error {
		if pid, started := state(); pid == 0 || started == before {
			return fmt.Errorf("%s was not started again", service)
		}
		return nil
	})
	p.healthy(t)
	return time.Since(began).Round(100 * time.Millisecond)
}

// cutOff takes a container off the network for a while.
func (p *project) cutOff(t *testing.T, service string) {
	t.Helper()
	id := p.container(t, service)
	const network = "dendra-jobs_default"
	p.docker(t, "network", "disconnect", network, id)
	select {
	case <-time.After(away): // It is the fault.
	case <-t.Context().Done():
	}
	p.docker(t, "network", "connect", "--alias", service, network, id)
}

// get asks the page, as who has the token.
func (p *project) get(t *testing.T, path, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.page+path, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode
}
