package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// followJobs keeps the copy of the jobs file that has the ports in use as the file is, until
// ctx ends. The server of the status page applies it.
func followJobs(ctx context.Context, o options, info stack.Info, out *terminal) {
	if appliedFile(o, info) == o.jobs {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		file, err := toApply(o, info)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(file) // What is gone is told by the server.
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != "" && text != told {
			out.say("%s: %s", file, text)
		}
		told = text
	}
}
