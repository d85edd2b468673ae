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

// watchJobs applies the jobs file, tells started what became of it, and
// applies the file again whenever it changes, until ctx ends; then it closes the
// returned channel. What the starter says about a bad file is shown, and the next
// change is waited for. The jobs of a file that is gone stay as they are.
func watchJobs(ctx context.Context, o options, info stack.Info, env []string, logs logs, started func(file string, applied bool)) <-chan struct{} {
	out := logs.out
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := stampOf(o.jobs)
		file, applied := apply(ctx, o, info, env, logs)
		if ctx.Err() == nil {
			started(file, applied)
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
			apply(ctx, o, info, env, logs)
		}
	}()
	return done
}

// apply runs the starter once. It returns the file that the starter was given, and whether
// it applied that.
func apply(ctx context.Context, o options, info stack.Info, env []string, logs logs) (file string, applied bool) {
	out := logs.out
	file, err := toApply(o, info)
	if err != nil {
		out.say("%s: %v", o.jobs, err)
		return o.jobs, false
	}
	if file == o.jobs {
		out.say("applying %s", o.jobs)
	} else {
		out.say("applying %s with the ports in use, as %s", o.jobs, file)
	}
	log, err := logs.open("starter")
	if err != nil {
		out.say("%v", err)
		return file, false
	}
	defer log.close()
	p, err := stack.Command{
		Path: filepath.Join(o.bin, "starter"), Args: []string{"apply", "--yes", "-f", file},
		Env: env, Stdout: log, Stderr: log,
	}.Start()
	if err != nil {
		out.say("starter: %v", err)
		return file, false
	}
	select {
	case <-p.Done():
		if p.ExitCode() == 0 {
			out.say("%s: %s", o.jobs, log.lastLine())
			return file, true
		}
		log.showEnd("%s was not applied (%s); it is tried again when it changes", o.jobs, p.State())
	case <-time.After(applyTimeout):
		p.Kill()
		log.showEnd("%s was not applied within %s; it is tried again when it changes", o.jobs, applyTimeout)
	case <-ctx.Done():
		p.Stop(stopGrace)
	}
	return file, false
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
