package api

import (
	"slices"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
)

// jobList is all that a filter of ListJobs lets through, in the order of ids.
type jobList struct {
	rows   []client.JobRow
	unread []string
	// leftOut counts the jobs that were left out as ended.
	leftOut int
	read    time.Time
}

// jobLists keeps lists for the pages after the first: to read all jobs takes Temporal
// several calls. A list of another server, or one that has gone, is read again; pages are
// cut at ids, so that no job is missed by that.
type jobLists struct {
	mu   sync.Mutex
	kept []keptList // the latest last
}

// keptList is a list and its key: see pages.
type keptList struct {
	key string
	jobList
}

// Bounds of the lists that are kept.
const (
	mostLists = 8
	listAge   = time.Minute
)

// get gives the latest list of a request.
func (l *jobLists) get(key string) (jobList, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kept := range l.kept {
		if kept.key == key && time.Since(kept.read) <= listAge {
			return kept.jobList, true
		}
	}
	return jobList{}, false
}

// keep keeps a list, in place of an older one of its request.
func (l *jobLists) keep(key string, list jobList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(kept keptList) bool {
		return kept.key == key || time.Since(kept.read) > listAge
	})
	if len(l.kept) == mostLists {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	l.kept = append(l.kept, keptList{key, list})
}
