package places

import (
	"fmt"
	"iter"

	"github.com/dendrascience/dendra-jobs/internal/objects"
)

// Quota bounds what an organization may have.
type Quota struct {
	Files int64 `json:"files,omitempty" minimum:"1" default:"10000" help:"how many files"`
	Bytes int64 `json:"bytes,omitempty" minimum:"1" default:"107374182400" help:"how many bytes together"`
}

// Exceeded says how the objects that are there, with more files and bytes, are too many; ""
// if they are not.
func (q Quota) Exceeded(there iter.Seq2[objects.Info, error], files, bytes int64) (string, error) {
	for info, err := range there {
		if err != nil {
			return "", err
		}
		files++
		bytes += info.Size
	}
	switch {
	case files > q.Files:
		return fmt.Sprintf("there would be %d files, and the quota of an organization is %d", files, q.Files), nil
	case bytes > q.Bytes:
		return fmt.Sprintf("there would be %d bytes, and the quota of an organization is %d", bytes, q.Bytes), nil
	}
	return "", nil
}
