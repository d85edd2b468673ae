package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// portsFile is where a system on free ports keeps them for the next time: the integration
// configs that its Platform API keeps name them, and people keep the page's address.
func portsFile(dir string) string { return filepath.Join(dir, "ports.json") }

// keptPorts is the content of the file.
type keptPorts struct {
	Servers   stack.Info     `json:"servers"`
	Processes map[string]int `json:"processes"`
}

// keepPorts keeps the ports of a system on free ports.
func keepPorts(dir string, info stack.Info, processes []process) error {
	kept := keptPorts{Servers: info, Processes: map[string]int{}}
	for _, p := range processes {
		kept.Processes[p.name] = p.port
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return os.WriteFile(portsFile(dir), text, 0o600)
}

// readPorts reads the ports of the last time, none if there was none.
func readPorts(dir string) keptPorts {
	var kept keptPorts
	text, err := os.ReadFile(portsFile(dir))
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return keptPorts{}
	}
	return kept
}

// reserveFree finds free ports for the processes: those of the last time, unless there was
// none or one of them is taken.
func reserveFree(dir string) (*ports.Reservation, error) {
	kept := readPorts(dir).Processes
	wants := make([]ports.Want, len(processes))
	for n, p := range processes {
		wants[n] = ports.Want{Server: p.name, Port: kept[p.name]}
	}
	if r, err := ports.Reserve(wants); err == nil {
		return r, nil
	}
	for n := range wants {
		wants[n].Port = 0
	}
	return ports.Reserve(wants)
}

// freePortFlags are the flags of devstack for free ports: those of the last time, unless
// there was none or one of them is taken.
func freePortFlags(dir string) []string {
	free := []string{"--free-ports"}
	flags, err := readPorts(dir).Servers.PortFlags()
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
