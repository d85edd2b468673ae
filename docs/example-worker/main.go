// Command example-worker is a worker of another repository: it brings a job type
// of its own, HashFiles, which no starter was built with. Jobs of it are checked,
// planned and run as any other.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

func main() {
	workers.Main(workers.Program{
		Worker: "files",
		Types: func(workers.Environment) ([]job.Type, error) {
			return []job.Type{job.NewType("HashFiles", "files", "Hashes the files of a folder.", hashFiles)}, nil
		},
	})
}

// hashSpec is the spec of HashFiles. The tags of a field are its key, its bounds, its
// default and its help; the worker and the starter check specs by them.
type hashSpec struct {
	Folder   string `json:"folder" minLength:"1" help:"the folder to read, with all that is below it"`
	MaxBytes int64  `json:"max_bytes,omitempty" minimum:"1" default:"1073741824" help:"the largest file that is hashed; larger ones are counted"`
}

// position is what a run leaves behind when it is interrupted.
type position struct {
	After string `json:"after"` // the last path that is done
	Files int64  `json:"files"`
	Large int64  `json:"large"`
	Sum   string `json:"sum"` // of all paths and files up to there
}

// hashFiles reads files in the order of their paths, so that an interrupted run
// can go on where it was, on this worker or on another.
func hashFiles(ctx context.Context, run job.Run, spec hashSpec) (job.Result, error) {
	var at position
	if _, err := run.Cursor(&at); err != nil {
		return job.Result{}, err
	}
	err := filepath.WalkDir(spec.Folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || at.After != "" && !isAfter(path, at.After) {
			return nil
		}
		select {
		case <-run.Stopping():
			return job.ErrStopped // The last checkpoint is the position.
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if err := at.add(path, spec.MaxBytes); err != nil {
			return err
		}
		run.Checkpoint(job.Progress{Done: at.Files, Message: path}, at)
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return job.Result{}, job.Final("NoFolder", "%w", err)
	case err != nil:
		return job.Result{}, err
	}
	return job.Result{
		Message: "all files are hashed",
		Counts:  map[string]int64{"files": at.Files, "too_large": at.Large},
		Output:  job.EncodeJSON(map[string]string{"sha256": at.Sum}),
	}, nil
}

// isAfter reports whether a walk comes to a path later than to another: it goes by
// the names of each folder, so that "a/b" comes before "a-b".
func isAfter(path, other string) bool {
	separator := string(filepath.Separator)
	return slices.Compare(strings.Split(path, separator), strings.Split(other, separator)) > 0
}

// add hashes one more file.
func (p *position) add(path string, most int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // Only read.
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p.After = path
	if info.Size() > most {
		p.Large++
		return nil
	}
	sum := sha256.New()
	if _, err := io.WriteString(sum, p.Sum+path+"\x00"); err != nil {
		return err
	}
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	p.Files++
	p.Sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}
