package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// Namespaces are named after the process that made them, so that a later one finds those
// of a dead one.
const namePrefix = "dendra-soak-"

// network is a bridge in a namespace of its own, so that filters of this machine do not see
// its traffic, and a namespace for each host. Callers are in the bridge's namespace.
type network struct {
	prefix string
	hosts  string // file that stands in for /etc/hosts
	made   []string
}

const (
	hub     = "hub"
	subnet  = "10.77.0."
	bridge  = "bridge"
	inside  = "eth0"
	netmask = "/24"
)

// command runs a program to its end; what it said is in the error.
func command(path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // A second Ctrl-C must not keep it from removing things.
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (n *network) name(host string) string { return n.prefix + host }

// add makes a namespace; port is its end at the bridge.
func (n *network) add(host, address string) error {
	name := n.name(host)
	if err := command("ip", "netns", "add", name); err != nil {
		return err
	}
	n.made = append(n.made, name)
	if err := command("ip", "-n", name, "link", "set", "lo", "up"); err != nil {
		return err
	}
	if host == hub {
		return errors.Join(
			command("ip", "-n", name, "link", "add", bridge, "type", "bridge"),
			command("ip", "-n", name, "address", "add", address+netmask, "dev", bridge),
			command("ip", "-n", name, "link", "set", bridge, "up"))
	}
	return errors.Join(
		command("ip", "-n", n.name(hub), "link", "add", host, "type", "veth", "peer", "name", inside, "netns", name),
		command("ip", "-n", n.name(hub), "link", "set", host, "master", bridge, "up"),
		command("ip", "-n", name, "address", "add", address+netmask, "dev", inside),
		command("ip", "-n", name, "link", "set", inside, "up"))
}

// within has a command run in the namespace of a host, with the cluster's names. The process
// stays the same, so that signals reach the program itself.
func (n *network) within(host string, c stack.Command) stack.Command {
	c.Args = append([]string{
		"--net=/run/netns/" + n.name(host), "unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, n.hosts, c.Path,
	}, c.Args...)
	c.Path = "nsenter"
	return c
}

// filter adds or deletes a rule for the traffic of a host; the chain is INPUT or OUTPUT.
func (n *network) filter(action, host, chain string, match ...string) error {
	device := "-i"
	if chain == "OUTPUT" {
		device = "-o"
	}
	args := append([]string{"--net=/run/netns/" + n.name(host), "iptables", "-w", action, chain, device, inside}, match...)
	return command("nsenter", append(args, "-j", "DROP")...)
}

// remove deletes the namespaces, and with them all links.
func (n *network) remove() (err error) {
	for _, name := range n.made {
		err = errors.Join(err, command("ip", "netns", "delete", name))
	}
	n.made = nil
	return err
}

// removeDead deletes namespaces of soaks whose process is gone.
func removeDead() error {
	paths, err := filepath.Glob("/run/netns/" + namePrefix + "*")
	for _, path := range paths {
		name := filepath.Base(path)
		owner, _, _ := strings.Cut(strings.TrimPrefix(name, namePrefix), "-")
		pid, wrong := strconv.Atoi(owner)
		if wrong != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		err = errors.Join(err, command("ip", "netns", "delete", name))
	}
	return err
}

// netem reports whether the kernel can delay packets.
func (n *network) netem() bool {
	add := []string{"-n", n.name(hub), "qdisc", "add", "dev", bridge, "root", "netem", "delay", "1ms"}
	if command("tc", add...) != nil {
		return false
	}
	return command("tc", "-n", n.name(hub), "qdisc", "delete", "dev", bridge, "root") == nil
}

// missing tells what the machine lacks, and how to get it.
func missing(servers string) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs network namespaces, which only root can make: run it as root")
	}
	var all []error
	for program, from := range map[string]string{
		"ip": "iproute2", "tc": "iproute2", "iptables": "iptables", "nsenter": "util-linux", "unshare": "util-linux", "setpriv": "util-linux",
	} {
		if _, err := exec.LookPath(program); err != nil {
			all = append(all, fmt.Errorf("%s is missing: apt-get install %s", program, from))
		}
	}
	if postgres() == "" {
		all = append(all, errors.New("PostgreSQL is missing: apt-get install postgresql"))
	}
	for _, program := range []string{"nats-server", "temporal-server", "temporal-sql-tool", "versitygw"} {
		if _, err := os.Stat(filepath.Join(servers, program)); err != nil {
			all = append(all, fmt.Errorf("%s is not in %s: make servers", program, servers))
		}
	}
	return errors.Join(all...)
}

// postgres is the folder of PostgreSQL's programs, those of the latest release.
func postgres() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}
