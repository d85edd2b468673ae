package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// usualAddress is an address at which a server of the stack may listen by default.
var usualAddress = regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost):\d+`)

// atPresent is text with the addresses that the servers have now, in place of the usual
// ones. Addresses of other ports stay.
func atPresent(info stack.Info, text string) string {
	now := map[string]string{
		"7233": info.Temporal, "8233": info.WebUI, "4222": info.NATS, "8086": info.Influx, "9000": info.S3.Endpoint,
		"8090": info.HOBOlink.URL, "1024": info.LDMP, "8091": info.Platform.URL,
	}
	return usualAddress.ReplaceAllStringFunc(text, func(usual string) string {
		_, port, _ := strings.Cut(usual, ":")
		address := now[port]
		if _, after, isURL := strings.Cut(address, "://"); isURL {
			address = after
		}
		if _, current, err := net.SplitHostPort(address); err != nil || current == port {
			return usual
		}
		return address
	})
}

// toApply is the file to apply for the jobs file: a copy if addresses in it are not those
// of the servers now.
func toApply(o options, info stack.Info) (string, error) {
	text, err := os.ReadFile(o.jobs)
	if err != nil {
		return "", err
	}
	present := atPresent(info, string(text))
	if present == string(text) {
		return o.jobs, nil
	}
	path := short(filepath.Join(o.dir, "jobs-with-ports.toml"))
	return path, os.WriteFile(path, []byte(present), 0o600)
}
