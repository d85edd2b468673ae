package schedules

import (
	"fmt"
	"sync"

	"github.com/dendrascience/dendra-jobs/client"
)

// looks are those at many jobs. They go on past a job that a busy server does not answer for,
// and end when it answers for none.
type looks struct {
	mu       sync.Mutex
	inVain   int   // in a row, now
	answered bool  // once at least
	last     error // of a look in vain
	over     bool
}

// maxInVain is how many jobs in a row a server may not answer for. No more are looked at then.
const maxInVain = 8

// at looks at a job. That a busy server does not answer is no error, but why the job is unread.
func (l *looks) at(look func() error) (unread, err error) {
	if l.isOver() {
		return l.err(), nil
	}
	err = look()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !client.Busy(err) {
		l.inVain, l.answered = 0, true
		return nil, err
	}
	l.inVain, l.last = l.inVain+1, err
	l.over = l.over || l.inVain == maxInVain
	return err, nil
}

func (l *looks) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// err is set if the server answered for no job, or for none of many in a row.
func (l *looks) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return fmt.Errorf("%d jobs in a row could not be read, the last: %w", maxInVain, l.last)
	case !l.answered:
		return l.last
	}
	return nil
}
