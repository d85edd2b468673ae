package jobsfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dendrascience/dendra-jobs/job"
)

// File is a jobs file without problems.
type File struct {
	// Jobs holds the jobs, ordered by id: defaults filled in, Provider toml,
	// Worker that of the job type, Spec in canonical JSON (keys in order, no
	// white space).
	Jobs []job.Job

	source *source
	places map[string]places
}

// Position is the line and the column, from 1, of a value in the definition of
// a job: Position("t.a", "recurring", "recur_every"). Of what the job inherits
// it is the place that it is inherited from; of what the file does not say, and
// without a path, that of the table that would say it, at last the job's own.
// A job that is not in the file has no position: 0, 0.
func (f *File) Position(jobID string, path ...string) (line, column int) {
	found, ok := f.places[jobID]
	if !ok {
		return 0, 0
	}
	return f.source.position(found.locate(path, false))
}

// Load reads a file. The error says why the file could not be read at all; what
// is wrong within it are problems, and the File is nil if there is any.
//
// Only regular files are read, at most 1 MiB. A symbolic link is followed as
// long as it stays within the folder of path, as those of a mounted Kubernetes
// ConfigMap do.
func Load(path string, types []job.Type) (*File, []Problem, error) {
	text, err := readRegular(path)
	if err != nil {
		return nil, nil, err
	}
	file, problems := Read(path, text, types)
	return file, problems, nil
}

func readRegular(path string) ([]byte, error) {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("jobs file %s cannot be read: %w", path, reason(err))
	}
	defer func() { _ = folder.Close() }()
	// Before it is opened: opening a named pipe would wait for its writer.
	info, err := folder.Stat(filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("jobs file %s cannot be read: %w", path, reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("jobs file %s is not a regular file", path)
	}
	file, err := folder.Open(filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("jobs file %s cannot be read: %w", path, reason(err))
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("jobs file %s cannot be read: %w", path, reason(err))
	}
	return text, nil
}

var errOutside = errors.New("it is a link to a file outside its folder, and only links within it are followed; name the file itself")

// reason drops the operation and the path from an error: the sentence around it
// has them.
func reason(err error) error {
	// The standard library has no variable for this error.
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Err.Error() == "path escapes from parent" {
		return errOutside
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}
