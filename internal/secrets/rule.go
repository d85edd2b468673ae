package secrets

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/localnet"
	"github.com/dendrascience/dendra-jobs/job"
)

// Itself is the destination of a secret that is a URL, and is called.
const Itself = "itself"

// rule is what a secret allows.
type rule struct {
	hosts  []host
	owners []job.Owner
	// everyOwner allows jobs of all owners, and those without one.
	everyOwner bool
}

// host is one that a secret may go to. Without a port, all ports are meant.
type host struct {
	name, port string
	plain      bool
}

// header is how a text with a header begins. An address and user:password are none.
var header = regexp.MustCompile(`^((hosts|owners):|[a-z]+:[ \t])`)

var headerLine = regexp.MustCompile(`^([a-z]+):[ \t]*(.*)$`)

// parse splits a text into the value and what stands before it.
func parse(text string) (value string, r rule, err error) {
	if !header.MatchString(text) {
		return strings.TrimRight(text, "\r\n"), rule{}, nil
	}
	lines, value, found := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n")
	if !found {
		return "", rule{}, errors.New("an empty line has to be between what it allows and the value")
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(lines, "\n") {
		parts := headerLine.FindStringSubmatch(line)
		if parts == nil || seen[parts[1]] {
			return "", rule{}, errors.New("before the empty line are one line of hosts and one of owners")
		}
		seen[parts[1]] = true
		if err := r.add(parts[1], parts[2]); err != nil {
			return "", rule{}, err
		}
	}
	return strings.TrimRight(value, "\n"), r, nil
}

// add takes a line of a header.
func (r *rule) add(key, list string) error {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case key == "hosts":
			h, err := parseHost(entry)
			if err != nil {
				return err
			}
			r.hosts = append(r.hosts, h)
		case key == "owners" && entry == "*":
			r.everyOwner = true
		case key == "owners":
			owner, err := job.ParseOwner(entry)
			if err != nil {
				return fmt.Errorf("owners: %w, or a star for all", err)
			}
			r.owners = append(r.owners, owner)
		default:
			return errors.New("before the empty line are lines of hosts and of owners alone")
		}
	}
	return nil
}

func parseHost(entry string) (host, error) {
	name, plain := strings.CutPrefix(entry, "http://")
	u, err := url.Parse("https://" + name)
	if err != nil || u.Hostname() == "" || u.Host != name || strings.Contains(name, "*") {
		return host{}, fmt.Errorf("hosts: %.80q is not HOST, HOST:PORT, http://HOST or http://HOST:PORT", entry)
	}
	return host{hostName(u), u.Port(), plain}, nil
}

// hostName is the name as it is compared.
func hostName(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

// allows says why the value may not be sent.
func (r rule) allows(value, destination string, owner job.Owner) error {
	if err := r.allowsOwner(owner); err != nil {
		return err
	}
	hosts := r.hosts
	if destination == Itself {
		u, err := url.Parse(value)
		if err != nil || u.Hostname() == "" {
			return errors.New("is not a URL")
		}
		if destination = value; len(hosts) == 0 {
			hosts = []host{{name: hostName(u)}} // It says itself where it goes.
		}
	}
	return allowsHost(hosts, destination)
}

func (r rule) allowsOwner(owner job.Owner) error {
	switch none := (owner == job.Owner{}); {
	case r.everyOwner || slices.Contains(r.owners, owner) || none && len(r.owners) == 0:
		return nil
	case none:
		return errors.New("is not for jobs without an owner: a line \"owners: *\" before it would allow them")
	}
	return fmt.Errorf("is not for jobs of %s: a line \"owners: %s\" before it would allow them", owner, owner)
}

// encrypted are the schemes whose clients do nothing without TLS.
func encrypted(scheme string) bool {
	return slices.Contains([]string{"https", "smtp", "tls"}, scheme)
}

// port is the port of a URL, also if it is that of its scheme.
func port(u *url.URL) string {
	if u.Port() == "" {
		return map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Port()
}

func allowsHost(hosts []host, destination string) error {
	u, err := url.Parse(destination)
	if err != nil || u.Hostname() == "" {
		return errors.New("cannot be sent: its destination is not a URL with a host")
	}
	name := hostName(u)
	if len(hosts) == 0 && localnet.Loopback(name) {
		return nil
	}
	shown := u.Host
	if !encrypted(u.Scheme) && !localnet.Loopback(name) {
		shown = "http://" + shown
	}
	known := false
	for _, h := range hosts {
		if h.name != name || h.port != "" && h.port != port(u) {
			continue
		}
		known = true
		if encrypted(u.Scheme) || localnet.Loopback(name) || h.plain && localnet.Private(context.Background(), name) {
			return nil
		}
		if h.plain {
			return fmt.Errorf("may not go to %s without TLS, since that has addresses which are not private", u.Host)
		}
	}
	if known {
		return fmt.Errorf("may not go to %s without TLS: in the line of hosts before it, %s would allow that for private addresses", u.Host, shown)
	}
	return fmt.Errorf("may not go to %s: a line \"hosts: %s\" before it would allow that", u.Host, shown)
}
