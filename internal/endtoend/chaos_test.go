package endtoend_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// chaos takes servers and workers away at random and gives them back, several at
// a time as it comes.
type chaos struct {
	*testing.T
	random  *rand.Rand
	targets []*target
	began   time.Time
	told    []string
}

// target is something that fails in several ways, one at a time.
type target struct {
	name   string
	faults []fault
	outage *outage
}

// fault is a way to fail.
type fault struct {
	name    string // as in "is killed"
	longest time.Duration
	begin   func()
	// ended says whether it can be given back; nil if at any time.
	ended func() bool
	// end gives it back; nil if it comes back by itself.
	end func()
}

type outage struct {
	fault *fault
	until time.Time
}

func newChaos(t *testing.T, random *rand.Rand) *chaos {
	c := &chaos{T: t, random: random, began: time.Now()}
	t.Cleanup(func() { t.Logf("faults, and what was waited for in vain:\n%s", strings.Join(c.told, "\n")) })
	return c
}

func (c *chaos) add(name string, faults ...fault) {
	c.targets = append(c.targets, &target{name: name, faults: faults})
}

func (c *chaos) tell(format string, args ...any) {
	c.told = append(c.told, fmt.Sprintf("%7.2fs ", time.Since(c.began).Seconds())+fmt.Sprintf(format, args...))
}

// strike is a fault of a target.
type strike struct {
	target *target
	fault  *fault
}

// schedule draws n strikes: every fault of every target once as far as n goes, in
// any order, and any of them after that.
func (c *chaos) schedule(n int) []strike {
	var all []strike
	for _, target := range c.targets {
		for i := range target.faults {
			all = append(all, strike{target, &target.faults[i]})
		}
	}
	var drawn []strike
	for len(drawn) < n {
		c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		drawn = append(drawn, all[:min(len(all), n-len(drawn))]...)
	}
	return drawn
}

// strike begins an outage, when the last one of the target is over.
func (c *chaos) strike(s strike) {
	c.Helper()
	c.require("the end of the last outage of "+s.target.name, func() bool { return s.target.outage == nil })
	c.tell("%s %s", s.target.name, s.fault.name)
	s.fault.begin()
	if s.fault.end != nil {
		s.target.outage = &outage{s.fault, time.Now().Add(time.Duration(c.random.Int64N(int64(s.fault.longest))))}
	}
}

// strikeUntil strikes until a condition holds, ever less often, ends all outages, and gives how
// many strikes there were.
func (c *chaos) strikeUntil(what string, holds func() bool) (strikes int) {
	c.Helper()
	pause := 5 * time.Second
	for _, s := range c.schedule(1000) {
		if c.await(pause, holds) {
			c.mend()
			return strikes
		}
		c.strike(s)
		strikes++
		pause = min(pause*5/4, time.Minute)
	}
	require.FailNow(c, "waited for "+what)
	return strikes
}

// await ends outages that are over until a condition holds, and reports whether it
// did in time.
func (c *chaos) await(limit time.Duration, holds func() bool) bool {
	c.Helper()
	return stacktest.Await(limit, func() bool {
		for _, target := range c.targets {
			if o := target.outage; o != nil && time.Now().After(o.until) && (o.fault.ended == nil || o.fault.ended()) {
				o.fault.end()
				target.outage = nil
				c.tell("%s is back", target.name)
			}
		}
		return holds()
	})
}

func (c *chaos) require(what string, holds func() bool) {
	c.Helper()
	const limit = 2 * time.Minute
	require.True(c, c.await(limit, holds), "waited %s for %s", limit, what)
}

// mend waits for the end of all outages.
func (c *chaos) mend() {
	c.Helper()
	c.require("the end of all outages", func() bool {
		for _, target := range c.targets {
			if target.outage != nil {
				return false
			}
		}
		return true
	})
}

// The longest outages. A process that stands still is taken for lost after the
// heartbeat timeout of three seconds, some of the time.
const (
	longestDown   = 2 * time.Second
	longestFrozen = 6 * time.Second
)

// addWorker starts a worker that fails from time to time, and gives how to ask for its present
// process.
func (c *chaos) addWorker(b *bench, program, service string, env ...string) func() *stacktest.Process {
	c.Helper()
	start := func() *stacktest.Process {
		return stacktest.StartProgram(c.T, b.st, stacktest.Program{Name: program, Args: []string{"--service", service}, Env: env})
	}
	w := start()
	restart := func() { w = start() }
	c.add("worker "+service,
		fault{name: "is killed", longest: longestDown, begin: func() { w.Kill() }, end: restart},
		fault{name: "is drained", longest: longestDown, begin: func() { w.Signal(syscall.SIGTERM) }, ended: func() bool { return w.Ended() }, end: restart},
		fault{name: "stands still", longest: longestFrozen, begin: func() {
			frozen := w
			frozen.Signal(syscall.SIGSTOP)
			c.Cleanup(func() { frozen.Signal(syscall.SIGCONT) })
		}, end: func() { w.Signal(syscall.SIGCONT) }})
	w.WaitOutput("msg=serving")
	return func() *stacktest.Process { return w }
}

// addServers has the servers of a stack fail from time to time, all at once.
func (c *chaos) addServers(name string, st *stacktest.Stack) {
	c.add(name,
		fault{name: "is killed", longest: longestDown, begin: st.Kill, end: func() { st.Restart(c.T) }},
		fault{name: "stands still", longest: longestFrozen, begin: func() {
			st.Signal(c.T, syscall.SIGSTOP)
			c.Cleanup(func() { st.Signal(c.T, syscall.SIGCONT) })
		}, end: func() { st.Signal(c.T, syscall.SIGCONT) }})
}

// addLoggers has the LoggerNet server fail from time to time.
func (c *chaos) addLoggers(l *loggers) {
	c.add("LoggerNet",
		fault{name: "cuts its connections", begin: func() { l.Cut() }},
		fault{name: "is killed", longest: longestDown, begin: l.Stop, end: l.listen})
}
