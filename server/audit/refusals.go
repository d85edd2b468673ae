package audit

import (
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/server/auth"
)

// Bounds of the lines of refused calls that have no caller: anybody can make them.
const (
	refusedEvery = time.Minute
	// maxAddresses is how many addresses have a line of their own. The rest share one.
	maxAddresses = 1000
)

// others stands for the addresses that are too many.
const others = "others"

// refusals count what was refused since the last line, by network.
type refusals struct {
	mu      sync.Mutex
	records map[string]*Record
}

// Refused counts a call, or a log-in, that was refused since nobody knows its caller. The log
// has a line a minute for each address, and one for all others when they are many.
func (l *Log) Refused(caller auth.Caller, procedure string, err *connect.Error) {
	l.refusals.mu.Lock()
	defer l.refusals.mu.Unlock()
	if l.refusals.records == nil {
		l.refusals.records = map[string]*Record{}
		time.AfterFunc(refusedEvery, l.Flush)
	}
	network := auth.Network(caller.Address)
	if l.refusals.records[network] == nil && len(l.refusals.records) >= maxAddresses {
		network = others
	}
	record := l.refusals.records[network]
	if record == nil {
		record = &Record{Time: time.Now().UTC(), Role: caller.Role.String(), Address: network, Refused: map[string]int{}}
		l.refusals.records[network] = record
	}
	record.outcome(err)
	record.Refused[procedure]++
}

// Flush writes what Refused has counted. A server that stops calls it.
func (l *Log) Flush() {
	l.refusals.mu.Lock()
	counted := l.refusals.records
	l.refusals.records = nil
	l.refusals.mu.Unlock()
	records := make([]Record, 0, len(counted))
	for _, record := range counted {
		records = append(records, *record)
	}
	if len(records) > 0 {
		_ = l.Write(records...) // The log of the process has told.
	}
}
