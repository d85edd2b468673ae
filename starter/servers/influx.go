package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// loaderType is the job type whose jobs name the InfluxDB servers.
const loaderType = "LiveLoadInfluxV1"

// placedMirror is a server of a location.
type placedMirror struct {
	influx.Mirror
	location string
	owner    job.Owner // of the job that names it
}

func (m placedMirror) check() string { return m.location + "/" + m.Name }

// influx looks at the InfluxDB servers of all loaders.
func (l *look) influx(ctx context.Context) []Result {
	mirrors, none := l.mirrors(ctx)
	if none != nil {
		return []Result{*none}
	}
	var results []Result
	seen := map[string]bool{}
	for _, m := range mirrors {
		if key := m.InfluxURL + " " + m.Username; !seen[key] {
			seen[key] = true
			results = append(results, l.mirror(ctx, m))
		}
	}
	return results
}

// mirrors are the servers of all loaders, or says why there are none.
func (l *look) mirrors(ctx context.Context) (mirrors []placedMirror, none *Result) {
	jobs, c := l.Jobs, l.control()
	if c == nil && len(jobs) == 0 {
		unknown := unset("servers", "not known without Temporal; -f FILE looks at those of a jobs file")
		return nil, &unknown
	}
	if c != nil {
		live, err := loaders(ctx, c)
		if err != nil {
			failed := wrong("jobs", err.Error(), "look at the log of Temporal")
			return nil, &failed
		}
		jobs = append(live, jobs...)
	}
	for _, j := range jobs {
		var servers influx.Servers
		if j.Type != loaderType || json.Unmarshal(j.Spec, &servers) != nil {
			continue
		}
		for _, m := range servers.All() {
			m.Database = cmp.Or(m.Database, servers.Database, servers.Location)
			mirrors = append(mirrors, placedMirror{m, servers.Location, j.Options.Owner})
		}
	}
	if len(mirrors) == 0 {
		unknown := unset("servers", "no job of type "+loaderType+" names one; -f FILE looks at those of a jobs file")
		return nil, &unknown
	}
	return mirrors, nil
}

// login is how to speak to a server.
func (l *look) login(m placedMirror) (influx.Config, error) {
	config := influx.Config{URL: m.InfluxURL, Username: m.Username}
	if m.Password == "" {
		return config, nil
	}
	password, err := secrets.New(l.Getenv).Resolve(m.Password, m.InfluxURL, m.owner)
	if err != nil {
		return config, fmt.Errorf("%s asks for a login: %w", m.InfluxURL, err)
	}
	config.Password = password
	return config, nil
}

// loaders are the load jobs in Temporal.
func loaders(ctx context.Context, c *client.Client) ([]job.Job, error) {
	found, err := c.Jobs.Find(ctx, job.Filter{Type: loaderType})
	var jobs []job.Job
	for _, f := range found {
		live, failed := c.Jobs.Live(ctx, f.ID)
		if failed != nil {
			return jobs, failed
		}
		jobs = append(jobs, live.Job)
	}
	return jobs, err
}

// mirror looks at one server.
func (l *look) mirror(ctx context.Context, m placedMirror) Result {
	check := m.check()
	config, err := l.login(m)
	switch {
	case job.ClassOf(err) == errclass.SecretRefused:
		return wrong(check, err.Error(), "change what stands before the secret, or the job")
	case err != nil:
		return unset(check, err.Error())
	}
	head, err := l.timeOf(ctx, "influx "+check, strings.TrimSuffix(m.InfluxURL, "/")+"/ping")
	if err != nil {
		return wrong(check, fmt.Sprintf("influx %s cannot be reached: %s", m.InfluxURL, err), "start it, or correct the job's spec")
	}
	version := head.Get("X-Influxdb-Version")
	switch {
	case version == "":
		return wrong(check, m.InfluxURL+" does not answer as InfluxDB does", "correct the job's spec")
	case !before(strings.TrimPrefix(version, "v"), "2.0"):
		return wrong(check, fmt.Sprintf("influx %s has version %s", m.InfluxURL, version), "use InfluxDB 1.x: nothing newer was tested")
	}
	if _, err := influx.Query(ctx, config, "", "SHOW DATABASES"); err != nil {
		return wrong(check, err.Error(), "correct user and password in the job's spec")
	}
	return ok(check, fmt.Sprintf("influx %s, version %s", m.InfluxURL, version))
}
