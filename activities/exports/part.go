package exports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// maxPart bounds a part in memory, in bytes.
const maxPart = 256 << 20

// Part is a file of an export.
type Part struct {
	Key     string    `json:"key"`
	Series  int       `json:"series"` // place in the manifest's list
	From    time.Time `json:"from"`   // the span that was asked for
	To      time.Time `json:"to"`
	Rows    int64     `json:"rows"`
	Values  int64     `json:"values"`
	First   time.Time `json:"first"` // times of rows
	Last    time.Time `json:"last"`
	Gaps    int64     `json:"gaps"`
	Cadence float64   `json:"cadence_seconds,omitempty"`
	// LongestGaps are at most ten; those between the last row of the part before and the
	// first one of this part are among them.
	LongestGaps []cadence.Gap `json:"longest_gaps,omitempty"`
	Bytes       int64         `json:"bytes,omitempty"`
	SHA256      string        `json:"sha256,omitempty"`
}

// partKey is the metadata of a part's object that has all of Part but key and content.
const partKey = "part"

// folder holds an export: ID/HASH-LIFE/. The hash is that of the question and of the run, so
// that each attempt finds what the ones before it have written, and no other run does. The
// life is how long the files last after the last of them.
func folder(organizationID string, question any, runID string, life job.Duration) string {
	hash := objects.Hash(append(job.EncodeJSON(question), runID...))[:16]
	return fmt.Sprintf("%s/%s-%s/", organizationID, hash, life)
}

// Names in a folder.
const (
	manifestName = "manifest.json"
	linksName    = "links.txt"
)

// keyPattern is the shape of keys: folder, life, name.
var keyPattern = regexp.MustCompile(`^([0-9a-f]{24}/[0-9a-f]{16}-(P[0-9DTHMS.]+)/)(?:manifest\.json|links\.txt|\d{6}-\w{1,128}\.(?:csv|csv\.gz|csv\.zst|zip|parquet|nc))$`)

// nameOf is the name of a series in keys: station and table.
func nameOf(of Series) string {
	name := pipeline.SafeName(of.Station.Slug + "_" + of.Table)
	return name[:min(len(name), maxNameInKey)]
}

const maxNameInKey = 128

// partName is the key of a part.
func (e *export) partName(number int, series int) string {
	extension, _ := e.spec.kind()
	return fmt.Sprintf("%s%06d-%s%s", e.folder, number, nameOf(e.series[series]), extension)
}

// making is a part under way.
type making struct {
	Part

	file  file
	steps cadence.Steps
}

// begin begins the next part.
func (e *export) begin() (*making, error) {
	of := e.series[e.at.Series]
	file, err := e.spec.newFile(of)
	m := &making{file: file, Part: Part{Series: e.at.Series, From: e.at.From}}
	if !e.at.Last.IsZero() {
		m.steps.Add(e.at.Last)
	}
	return m, err
}

func (m *making) row(at int64, values []jsontext.Value) error {
	moment := time.Unix(0, at).UTC()
	m.steps.Add(moment)
	if m.Rows == 0 {
		m.First = moment
	}
	m.Last = moment
	m.Rows++
	for _, v := range values {
		if v.Kind() != 'n' {
			m.Values++
		}
	}
	if m.file.bytes() > maxPart {
		return job.Fail(errclass.ExportRefused, "a part has more than %d MiB after %d rows: lower part_points", maxPart>>20, m.Rows)
	}
	return m.file.row(at, values)
}

// store writes a part, and goes on behind it. A part that is there already stays: the place
// to go on from is then the one that it says.
func (e *export) store(ctx context.Context, m *making) error {
	data, err := m.file.close()
	if err != nil {
		return err
	}
	report := m.steps.Report()
	m.Gaps, m.Cadence, m.LongestGaps = report.Gaps, report.Cadence, report.LongestGaps
	if err := ctx.Err(); err != nil {
		return err
	}
	_, mediaType := e.spec.kind()
	info, written, err := e.Store.PutNew(ctx, objects.Object{
		Bucket: e.Places.Exports.Bucket, Key: e.partName(e.at.Parts+1, m.Series), Data: data, ContentType: mediaType,
		Metadata: map[string]string{partKey: string(job.EncodeJSON(m.Part))},
	})
	if conflict := (*objects.ConflictError)(nil); errors.As(err, &conflict) {
		err = nil
	}
	if err != nil {
		return err
	}
	if written {
		m.Bytes = info.Size
		e.take(m.Part)
		return nil
	}
	_, err = e.adopt(ctx)
	return err
}

// adopt goes on behind the next part, if it is there already: an attempt has written it
// whose checkpoint was lost. Its content has to have the hash that it says.
func (e *export) adopt(ctx context.Context) (found bool, err error) {
	key := e.partName(e.at.Parts+1, e.at.Series)
	data, info, err := e.Store.Get(ctx, e.Places.Exports.Bucket, key, 2*maxPart)
	if job.ClassOf(err) == errclass.ObjectMissing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	part, err := partOf(info)
	if err != nil {
		return false, err
	}
	if objects.Hash(data) != info.SHA256 || !part.From.Equal(e.at.From) || part.Series != e.at.Series || !part.To.After(part.From) {
		return false, job.Fail(errclass.Conflict, "object %s/%s is not the part that this run writes there", info.Bucket, key)
	}
	e.take(part)
	return true, nil
}

// partOf reads what the object of a part says.
func partOf(info objects.Info) (Part, error) {
	var part Part
	if err := json.Unmarshal([]byte(info.Metadata[partKey]), &part); err != nil || info.SHA256 == "" {
		return Part{}, job.Fail(errclass.Conflict, "object %s/%s is no part of an export", info.Bucket, info.Key)
	}
	part.Key, part.Bytes, part.SHA256 = info.Key, info.Size, info.SHA256
	return part, nil
}
