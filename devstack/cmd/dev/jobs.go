package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// applyTimeout bounds one run of the starter.
const applyTimeout = time.Minute

// watchJobs applies the jobs file, tells started whether that went well, and
// applies the file again whenever it changes, until ctx ends; then it closes the
// returned channel. What the starter says about a bad file is shown, and the next
// change is waited for. The jobs of a file that is gone stay as they are.
func watchJobs(ctx context.Context, o options, env []string, logs logs, started func(applied bool)) <-chan struct{} {
	out := logs.out
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := stampOf(o.jobs)
		applied := apply(ctx, o, env, logs)
		if ctx.Err() == nil {
			started(applied)
		}
		missing := 0 // looks in a row that did not find the file
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := stampOf(o.jobs)
			switch {
			case now == stamp{}:
				// A file that is missing for a moment is being replaced by an editor.
				if missing++; missing == 2 {
					out.say("%s is gone: its jobs stay as they are until it is back", o.jobs)
				}
				continue
			case missing >= 2:
				out.say("%s is back", o.jobs)
			case now != last:
				out.say("%s changed", o.jobs)
			default:
				missing = 0
				continue
			}
			missing, last = 0, now
			apply(ctx, o, env, logs)
		}
	}()
	return done
}

// apply runs the starter once and reports whether it applied the file.
func apply(ctx context.Context, o options, env []string, logs logs) bool {
	out := logs.out
	out.say("applying %s", o.jobs)
	log, err := logs.open("starter")
	if err != nil {
		out.say("%v", err)
		return false
	}
	defer log.close()
	p, err := stack.Command{
		Path: filepath.Join(o.bin, "starter"), Args: []string{"apply", "--yes", "-f", o.jobs},
		Env: env, Stdout: log, Stderr: log,
	}.Start()
	if err != nil {
		out.say("starter: %v", err)
		return false
	}
	select {
	case <-p.Done():
		if p.ExitCode() == 0 {
			out.say("%s: %s", o.jobs, log.lastLine())
			return true
		}
		log.showEnd("%s was not applied (%s); it is tried again when it changes", o.jobs, p.State())
	case <-time.After(applyTimeout):
		p.Kill()
		log.showEnd("%s was not applied within %s; it is tried again when it changes", o.jobs, applyTimeout)
	case <-ctx.Done():
		p.Stop(stopGrace)
	}
	return false
}

// stamp tells one state of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{modified: info.ModTime(), size: info.Size()}
}
