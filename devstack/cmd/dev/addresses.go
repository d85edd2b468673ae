package main

import (
	"bytes"
	"cmp"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// usualAddress is an address at which a server of the stack may listen by default.
var usualAddress = regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost):\d+`)

// moved has the address of each server that does not listen on its usual port, by that.
func moved(info stack.Info) map[string]string {
	now := map[string]string{
		"7233": info.Temporal, "8233": info.WebUI, "4222": info.NATS, "8086": info.Influx, "9000": info.S3.Endpoint,
		"8090": info.HOBOlink.URL, "1024": info.LDMP, "8091": info.Platform.URL,
	}
	for usual, address := range now {
		if _, after, isURL := strings.Cut(address, "://"); isURL {
			now[usual] = after
		}
		if _, port, err := net.SplitHostPort(now[usual]); err != nil || port == usual {
			delete(now, usual)
		}
	}
	return now
}

// atPresent is text with the addresses that the servers have now, in place of the usual
// ones. Addresses of other ports stay.
func atPresent(info stack.Info, text string) string {
	now := moved(info)
	return usualAddress.ReplaceAllStringFunc(text, func(usual string) string {
		_, port, _ := strings.Cut(usual, ":")
		return cmp.Or(now[port], usual)
	})
}

// appliedFile is the file that is applied for the jobs file: a copy where a server has not
// its usual port.
func appliedFile(o options, info stack.Info) string {
	if len(moved(info)) == 0 {
		return o.jobs
	}
	return short(filepath.Join(o.dir, "jobs-with-ports.toml"))
}

// toApply is the file to apply for the jobs file as it is now.
func toApply(o options, info stack.Info) (string, error) {
	path := appliedFile(o, info)
	if path == o.jobs {
		return path, nil
	}
	text, err := os.ReadFile(o.jobs)
	if err != nil {
		return path, err
	}
	wanted := []byte(atPresent(info, string(text)))
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, wanted) {
		return path, nil
	}
	whole := path + ".new" // Whoever reads the copy meanwhile reads all of it.
	if err := os.WriteFile(whole, wanted, 0o600); err != nil {
		return path, err
	}
	return path, os.Rename(whole, path)
}
