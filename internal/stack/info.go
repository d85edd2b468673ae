// Package stack describes the embedded stack of servers to the programs that
// start one and talk to it: the ready line, the environment of the processes
// that use it, and how its processes are started and ended.
package stack

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Info is what bin/devstack prints as one JSON line on its standard output
// when every server answers. What says where a server is, is empty of servers
// that the process does not run (--only).
type Info struct {
	PID       int    `json:"pid"`
	Data      string `json:"data"`      // absolute path of the data folder
	Namespace string `json:"namespace"` // Temporal namespace
	Tuning    string `json:"tuning"`    // "latency" or "stock"

	Temporal string `json:"temporal"` // host:port
	WebUI    string `json:"web_ui"`   // URL
	NATS     string `json:"nats"`     // URL, nats://host:port
	Influx   string `json:"influx"`   // URL of the HTTP API
	S3       S3     `json:"s3"`
	HOBOlink API    `json:"hobolink"`
	LDMP     string `json:"ldmp"`     // host:port of the LoggerNet development server
	Platform API    `json:"platform"` // reference Platform API
	Release2 API    `json:"release2"` // its Release 2 metadata API

	Databases []string          `json:"databases"` // InfluxDB databases made at start
	Buckets   []string          `json:"buckets"`   // S3 buckets made at start
	Versions  map[string]string `json:"versions"`  // release of each server
	ReadyMS   int64             `json:"ready_ms"`  // from the start of the process, in milliseconds
}

// S3 says how to reach the S3 store.
type S3 struct {
	Endpoint  string `json:"endpoint"` // URL
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	Region    string `json:"region"`
}

// API says how to reach an HTTP API that asks for a bearer token.
type API struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// HOBOlinkSecret is the variable that holds the value of the secret
// secret://hobolink-demo, the token of the HOBOlink development server, for jobs of all owners.
const HOBOlinkSecret = "DENDRA_SECRET_HOBOLINK_DEMO"

// Env returns the settings of a process that uses the stack, as NAME=value:
// those of docs/architecture.md, and where InfluxDB, HOBOlink and LoggerNet are,
// which jobs say themselves and people want to know.
func (i Info) Env() []string {
	settings := []string{
		"TEMPORAL_ADDRESS=" + i.Temporal,
		"TEMPORAL_NAMESPACE=" + i.Namespace,
		"DENDRA_S3_ENDPOINT=" + i.S3.Endpoint,
		"DENDRA_S3_ACCESS_KEY=" + i.S3.AccessKey,
		"DENDRA_S3_SECRET_KEY=" + i.S3.SecretKey,
		"DENDRA_S3_REGION=" + i.S3.Region,
		"DENDRA_NATS_URL=" + i.NATS,
		"DENDRA_INFLUX_URL=" + i.Influx,
		"DENDRA_HOBOLINK_URL=" + i.HOBOlink.URL,
		HOBOlinkSecret + "=owners: *\n\n" + i.HOBOlink.Token,
		"DENDRA_LDMP_ADDRESS=" + i.LDMP,
		"DENDRA_PLATFORM_URL=" + i.Platform.URL,
		"DENDRA_PLATFORM_TOKEN=" + i.Platform.Token,
		"DENDRA_RELEASE2_URL=" + i.Release2.URL,
		"DENDRA_RELEASE2_TOKEN=" + i.Release2.Token,
	}
	if i.Influx != "" {
		settings = append(settings, fmt.Sprintf(`DENDRA_PLACES={"locations":[{"location":"common1","influx_url":%q}]}`, i.Influx))
	}
	return settings
}

// With is i with the servers of other that i has not.
func (i Info) With(other Info) Info {
	if i.Temporal == "" {
		i.Temporal, i.Namespace, i.Tuning = other.Temporal, other.Namespace, other.Tuning
	}
	if i.Influx == "" {
		i.Influx, i.Databases = other.Influx, other.Databases
	}
	if i.S3.Endpoint == "" {
		i.S3, i.Buckets = other.S3, other.Buckets
	}
	if i.HOBOlink.URL == "" {
		i.HOBOlink = other.HOBOlink
	}
	if i.Platform.URL == "" {
		i.Platform, i.Release2 = other.Platform, other.Release2
	}
	for _, address := range []struct {
		of   *string
		from string
	}{{&i.WebUI, other.WebUI}, {&i.NATS, other.NATS}, {&i.LDMP, other.LDMP}} {
		if *address.of == "" {
			*address.of = address.from
		}
	}
	return i
}

// PortFlags returns the flags that make bin/devstack listen on the ports that
// the stack has now, so that its clients find it again after a restart. They name
// no port of a server that it does not have.
func (i Info) PortFlags() ([]string, error) {
	addresses := []struct{ flag, address string }{
		{"--temporal-port", tcp(i.Temporal)},
		{"--ui-port", i.WebUI},
		{"--nats-port", i.NATS},
		{"--influx-port", i.Influx},
		{"--s3-port", i.S3.Endpoint},
		{"--hobolink-port", i.HOBOlink.URL},
		{"--ldmp-port", tcp(i.LDMP)},
		{"--platform-port", i.Platform.URL},
	}
	flags := make([]string, 0, 2*len(addresses))
	for _, a := range addresses {
		if a.address == "" {
			continue
		}
		port, err := portOf(a.address)
		if err != nil {
			return nil, fmt.Errorf("port of %s: %w", a.flag, err)
		}
		flags = append(flags, a.flag, strconv.Itoa(port))
	}
	return flags, nil
}

func tcp(address string) string {
	if address == "" {
		return ""
	}
	return "tcp://" + address
}

func portOf(address string) (int, error) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
