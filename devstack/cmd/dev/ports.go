package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// portsFile is where a system on free ports keeps them for the next time: the integration
// configs that its Platform API keeps name them.
func portsFile(dir string) string { return filepath.Join(dir, "ports.json") }

// keepPorts keeps the ports of a system on free ports.
func keepPorts(dir string, info stack.Info) error {
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return os.WriteFile(portsFile(dir), text, 0o600)
}

// freePortFlags are the flags of devstack for free ports: those of the last time, unless
// there was none or one of them is taken.
func freePortFlags(dir string) []string {
	free := []string{"--free-ports"}
	text, err := os.ReadFile(portsFile(dir))
	if err != nil {
		return free
	}
	var info stack.Info
	if json.Unmarshal(text, &info) != nil {
		return free
	}
	flags, err := info.PortFlags()
	if err != nil || len(flags) == 0 {
		return free
	}
	for i := 1; i < len(flags); i += 2 { // A flag and its port take turns.
		port, err := strconv.Atoi(flags[i])
		if err != nil {
			return free
		}
		listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return free
		}
		_ = listener.Close() // Nobody has connected.
	}
	return flags
}
