package ldmptest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Server is the server. It is safe for concurrent use.
type Server struct {
	options Options

	mu          sync.Mutex
	changed     chan struct{} // closed when there may be more to send
	series      map[[2]string]*series
	listener    net.Listener
	connections map[net.Conn]struct{}
	served      int64
	refused     error
	working     sync.WaitGroup
}

// New makes a server that does not listen yet; see [Options] for what a zero
// value means.
func New(options Options) *Server {
	s := &Server{
		options: options.withDefaults(), changed: make(chan struct{}),
		series: map[[2]string]*series{}, connections: map[net.Conn]struct{}{},
	}
	for _, station := range s.options.Stations {
		for _, table := range station.Tables {
			s.series[[2]string{station.Name, table.Name}] = &series{
				station: station, table: table.withDefaults(), replaced: map[int64][]byte{},
				sentRecords: map[int64]int{}, ackedRecords: map[int64]int{},
			}
		}
	}
	return s
}

// Options returns the options of the server with defaults filled in.
func (s *Server) Options() Options { return s.options }

// Start takes connections in the background until [Server.Stop] is called. Failed
// is called if the listener fails before; nil ignores that.
func (s *Server) Start(listener net.Listener, failed func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = listener
	s.working.Go(func() {
		if err := s.accept(listener); !errors.Is(err, net.ErrClosed) && failed != nil {
			failed(err)
		}
	})
}

func (s *Server) accept(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.listener != listener { // stopped meanwhile
			s.mu.Unlock()
			_ = connection.Close()
			continue
		}
		s.connections[connection] = struct{}{}
		s.served++
		s.working.Go(func() { s.attend(connection) })
		s.mu.Unlock()
	}
}

// attend serves a connection, and forgets it.
func (s *Server) attend(connection net.Conn) {
	err := s.serve(connection)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, connection)
	if err != nil {
		s.refused = err
	}
}

// Stop stops listening and cuts all connections, as when the server's machine
// restarts. It can be started again.
func (s *Server) Stop() {
	s.mu.Lock()
	listener := s.listener
	s.listener = nil
	s.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
	s.Cut()
	s.working.Wait()
}

// Cut ends all connections, without a goodbye, and returns how many there were.
func (s *Server) Cut() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for connection := range s.connections {
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // what is on its way is lost as well
		}
		_ = connection.Close()
	}
	return len(s.connections)
}

// Served is how many connections were taken so far.
func (s *Server) Served() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// Refused is why the last connection was ended that did not keep to the protocol.
func (s *Server) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Touch has connections look for records again, after the clock was moved.
func (s *Server) Touch() { s.change(func() {}) }

// Replace has the server send a frame, given without its NUL, in the place of the
// record of a table at a time, whenever that is due. The record is then no longer
// among the readings.
func (s *Server) Replace(station, table string, at time.Time, frame []byte) error {
	return s.with(station, table, func(t *series) { t.replaced[t.firstAt(at)] = frame })
}

// OpenHole has the records of a table from one time to before another be missing,
// until the hole is filled.
func (s *Server) OpenHole(station, table string, from, to time.Time) (*Hole, error) {
	hole := &Hole{server: s}
	err := s.with(station, table, func(t *series) {
		hole.from, hole.to = t.firstAt(from), t.firstAt(to)
		t.holes = append(t.holes, hole)
	})
	return hole, err
}

// Readings lists the records of a table from one time to another, both included
// and never after the server's Now, apart from those that are replaced or lost.
func (s *Server) Readings(station, table string, from, to time.Time) ([]Reading, error) {
	if now := s.options.Now(); to.After(now) {
		to = now
	}
	var readings []Reading
	err := s.with(station, table, func(t *series) {
		for i := t.firstAt(from); i <= t.newest(to); i++ {
			hole := t.hole(i)
			if _, replaced := t.replaced[i]; !replaced && (hole == nil || hole.state == holeFilled) {
				readings = append(readings, t.reading(s.options.Seed, i))
			}
		}
	})
	return readings, err
}

// Account says what became of the records of a table.
type Account struct {
	Sent         int64 // repeats included
	Acknowledged int64 // repeats included
	// Unacknowledged are the times of records that were sent and never
	// acknowledged; only with Options.Ledger.
	Unacknowledged []time.Time
}

// Account gives the account of a table.
func (s *Server) Account(station, table string) (Account, error) {
	var a Account
	err := s.with(station, table, func(t *series) {
		a.Sent, a.Acknowledged = t.sent, t.acknowledged
		for index := range t.sentRecords {
			if t.ackedRecords[index] == 0 {
				a.Unacknowledged = append(a.Unacknowledged, t.timeOf(index))
			}
		}
	})
	return a, err
}

// Total sums up the accounts of all tables.
func (s *Server) Total() (sent, acknowledged int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.series {
		sent += t.sent
		acknowledged += t.acknowledged
	}
	return sent, acknowledged
}

func (s *Server) with(station, table string, do func(*series)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found := s.series[[2]string{station, table}]
	if !found {
		return fmt.Errorf("ldmptest: there is no table %s of station %s", table, station)
	}
	do(t)
	return nil
}

// change does something, and tells the connections.
func (s *Server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}
