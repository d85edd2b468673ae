// Package cluster runs servers and programs as a cluster would: each in a network namespace
// of its own, with faults of processes, networks and disks.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// Options of a cluster.
type Options struct {
	// TemporalHosts is their number, at most three.
	TemporalHosts int
	Servers       string // folder of nats-server, temporal-server, temporal-sql-tool and versitygw
	Starter       string // the program
	Dynamic       string // Temporal's dynamic configuration
	Say           func(format string, args ...any)
}

// Cluster is three Temporal hosts on one PostgreSQL, three NATS nodes, an S3 store, two
// starter serve, and hosts for workers.
type Cluster struct {
	Options
	// Delays says whether the kernel can delay packets.
	Delays bool

	folder  string // for data and logs
	network network
	members []*Member
	token   string
}

// Member is a host with one program.
type Member struct {
	Name    string
	address string
	disk    string // a small file system of its own, if not empty
	program stack.Command

	mu      sync.Mutex // of what follows
	process *stack.Process
	wanted  bool // to run
}

// Workers is the number of hosts for workers, worker-1 and so on, which start theirs.
const Workers = 4

// Names of single hosts.
const (
	PostgreSQL = "postgresql"
	S3         = "s3"
)

const (
	namespace  = "default"
	secret     = "soak-secret"
	diskSize   = "96m"
	stopGrace  = 15 * time.Second
	startLimit = 2 * time.Minute
)

// New makes a cluster; Start starts it.
func New(o Options) (*Cluster, error) {
	if err := missing(o.Servers); err != nil {
		return nil, err
	}
	for _, path := range []*string{&o.Servers, &o.Starter, &o.Dynamic} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	return &Cluster{Options: o, network: network{prefix: fmt.Sprintf("%s%d-", namePrefix, os.Getpid())}}, nil
}

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.folder}, elements...)...)
}

// declare lists the hosts, in the order of their start.
func (c *Cluster) declare() {
	add := func(name string, last int, path string, args, env []string) *Member {
		m := &Member{Name: name, address: fmt.Sprintf("%s%d", subnet, last)}
		if path != "" {
			m.program = stack.Command{Path: path, Args: args, Env: append(os.Environ(), env...)}
		}
		c.members = append(c.members, m)
		return m
	}
	pg := subnet + "10"
	add(PostgreSQL, 10, "setpriv", []string{
		"--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig", "KILL", filepath.Join(postgres(), "postgres"),
		"-D", c.path(PostgreSQL), "-k", c.path(PostgreSQL), "-c", "listen_addresses=*", "-c", "max_connections=400", "-c", "shared_buffers=256MB",
	}, nil)
	for n := 1; n <= 3; n++ {
		ip := fmt.Sprintf("%s%d", subnet, 20+n)
		disk := c.path("disk", fmt.Sprintf("nats-%d", n))
		add(fmt.Sprintf("nats-%d", n), 20+n, filepath.Join(c.Servers, "nats-server"), []string{
			"--addr", ip, "--port", "4222", "--name", fmt.Sprintf("nats-%d", n), "--config", c.path("nats.conf"), "--store_dir", disk,
			"--cluster_name", "soak", "--cluster", "nats://" + ip + ":6222",
			"--routes", "nats://" + subnet + "21:6222,nats://" + subnet + "22:6222,nats://" + subnet + "23:6222",
		}, nil).disk = disk
	}
	add(S3, 31, filepath.Join(c.Servers, "versitygw"), []string{
		"--port", subnet + "31:9000", "--access", "soak", "--secret", secret, "--region", "us-east-1", "--quiet", "posix", c.path(S3),
	}, nil)
	for n := 1; n <= c.TemporalHosts; n++ {
		ip := fmt.Sprintf("%s%d", subnet, 10+n)
		add(fmt.Sprintf("temporal-%d", n), 10+n, filepath.Join(c.Servers, "temporal-server"), []string{"--allow-no-auth", "start"}, []string{
			"DB=postgres12", "DB_PORT=5432", "POSTGRES_SEEDS=" + pg, "POSTGRES_USER=temporal", "POSTGRES_PWD=temporal",
			"BIND_ON_IP=" + ip, "TEMPORAL_BROADCAST_ADDRESS=" + ip, "CLUSTER_RPC_ADDRESS=temporal:7233", "CLUSTER_HTTP_ADDRESS=temporal:7243", "PUBLIC_FRONTEND_ADDRESS=" + ip + ":7233",
			"NUM_HISTORY_SHARDS=16", "LOG_LEVEL=warn", "DYNAMIC_CONFIG_FILE_PATH=" + c.Dynamic,
		})
	}
	for n := 1; n <= 2; n++ {
		add(fmt.Sprintf("serve-%d", n), 40+n, c.Starter, []string{
			"serve", "--listen", fmt.Sprintf("%s%d:8080", subnet, 40+n), "--credentials", c.path("credentials.toml"),
		}, c.settings())
	}
	for n := 1; n <= Workers; n++ {
		name := fmt.Sprintf("worker-%d", n)
		add(name, 50+n, "", nil, nil).disk = c.path("disk", name)
	}
}

// settings are those of a program in the cluster.
func (c *Cluster) settings() []string {
	return []string{
		"TEMPORAL_ADDRESS=dns:///temporal:7233", "TEMPORAL_NAMESPACE=" + namespace,
		"DENDRA_NATS_URL=nats://" + subnet + "21:4222,nats://" + subnet + "22:4222,nats://" + subnet + "23:4222", "DENDRA_NATS_REPLICAS=3",
		"DENDRA_S3_ENDPOINT=http://" + subnet + "31:9000", "DENDRA_S3_ACCESS_KEY=soak", "DENDRA_S3_SECRET_KEY=" + secret, "DENDRA_S3_REGION=us-east-1",
	}
}

// Env is the environment of the programs that use the cluster.
func (c *Cluster) Env() []string {
	return append(append(os.Environ(), c.settings()...), "DENDRA_TOKEN="+c.token, "NO_COLOR=1")
}

// TemporalPIDs are those of Temporal and PostgreSQL, separated by commas.
func (c *Cluster) TemporalPIDs() string {
	var pids []string
	for _, host := range append(c.Hosts("temporal-"), PostgreSQL) {
		pids = append(pids, strconv.Itoa(c.member(host).process.PID()))
	}
	return strings.Join(pids, ",")
}

// Server is the URL of a starter serve; any number stands for one of them.
func (c *Cluster) Server(n int) string { return fmt.Sprintf("http://%s%d:8080", subnet, 41+n%2) }

// Caller has a command run where callers are.
func (c *Cluster) Caller(command stack.Command) stack.Command { return c.network.within(hub, command) }

// On has a command run on a host, with its disk for temporary files.
func (c *Cluster) On(host string, command stack.Command) stack.Command {
	if m := c.member(host); m.disk != "" {
		command.Env = append(command.Env, "TMPDIR="+m.disk)
	}
	return c.network.within(host, command)
}

// Hosts are the names of the hosts that begin with a prefix.
func (c *Cluster) Hosts(prefix string) (names []string) {
	for _, m := range c.members {
		if strings.HasPrefix(m.Name, prefix) {
			names = append(names, m.Name)
		}
	}
	return names
}

func (c *Cluster) member(name string) *Member {
	return c.members[slices.IndexFunc(c.members, func(m *Member) bool { return m.Name == name })]
}

// Start brings the servers up and makes what they need. Data and logs go to a folder.
func (c *Cluster) Start(ctx context.Context, folder string) error {
	c.folder = folder
	c.network.hosts = c.path("hosts")
	c.declare()
	if err := c.prepare(); err != nil {
		return err
	}
	for _, step := range []struct {
		hosts string
		then  func(context.Context) error
	}{
		// The first host alone writes what all share: others that start with it may end.
		{PostgreSQL, c.schema}, {"nats-", nil}, {S3, nil}, {"temporal-1", c.setup}, {"temporal-", nil}, {"serve-", c.served},
	} {
		for _, host := range c.Hosts(step.hosts) {
			if c.member(host).process != nil {
				continue
			}
			if err := c.Begin(host); err != nil {
				return err
			}
		}
		if step.then == nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, startLimit)
		err := step.then(limited)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w; the logs are in %s", strings.TrimSuffix(step.hosts, "-"), err, c.folder)
		}
		c.Say("%s: up", strings.TrimSuffix(step.hosts, "-"))
	}
	return nil
}

// prepare makes folders, disks, names and networks.
func (c *Cluster) prepare() error {
	// PostgreSQL runs as a user of its own, who has to get to its folder.
	err := errors.Join(removeDead(), os.Mkdir(c.folder, 0o700), command("chmod", "711", c.folder, filepath.Dir(c.folder)), os.MkdirAll(c.path(S3), 0o700), os.MkdirAll(c.path(PostgreSQL), 0o700),
		// Its streams may grow beyond its disk, so that the disk can be full.
		os.WriteFile(c.path("nats.conf"), []byte("jetstream { max_file_store: 64G }\n"), 0o600),
		c.network.add(hub, subnet+"1"))
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for _, m := range c.members {
		name := m.Name
		if strings.HasPrefix(name, "temporal-") {
			name += " temporal"
		}
		fmt.Fprintf(&hosts, "%s %s\n", m.address, name)
		err = errors.Join(err, c.network.add(m.Name, m.address))
		if m.disk != "" {
			err = errors.Join(err, os.MkdirAll(m.disk, 0o700), command("mount", "-t", "tmpfs", "-o", "size="+diskSize, "none", m.disk))
		}
	}
	err = errors.Join(err, os.WriteFile(c.network.hosts, []byte(hosts.String()), 0o644)) //nolint:gosec // All may read it.
	if err == nil {
		c.Delays = c.network.netem()
	}
	return err
}

// Stop ends all processes, and removes networks and disks. Workers have ended before.
func (c *Cluster) Stop() error {
	var err error
	for _, m := range slices.Backward(c.members) {
		c.Thaw(m.Name) // A stopped process does not end.
		if p := m.unwanted(); p != nil {
			if m.Name == PostgreSQL {
				c.end(m, fast)
			}
			p.Stop(stopGrace)
		}
		if m.disk != "" {
			err = errors.Join(err, command("umount", "--lazy", m.disk))
		}
	}
	return errors.Join(err, c.network.remove())
}
