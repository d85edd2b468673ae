package exports

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const manifestFormat = "dendra.export/1"

// Manifest says what an export has. It holds no link, so that it can be passed on, and
// nothing that would differ if it were made again.
type Manifest struct {
	// Format names this layout: dendra.export/1.
	Format         string `json:"format"`
	OrganizationID string `json:"organization_id"`
	// Licence is that of the question, empty if it states none.
	Licence  string         `json:"licence"`
	Question Spec           `json:"question"`
	Series   []SeriesReport `json:"series"`
	// Parts are in the order of series and time.
	Parts []Part `json:"parts"`
	// Notes say what of the question the files do not have.
	Notes []string `json:"notes,omitempty"`
}

// SeriesReport is a series with what was found of it.
type SeriesReport struct {
	Series

	Parts  int       `json:"parts"`
	Rows   int64     `json:"rows"`
	Values int64     `json:"values"`
	First  time.Time `json:"first,omitzero"` // times of rows
	Last   time.Time `json:"last,omitzero"`
	// Gaps counts where the next row is more than one and a half cadences of its part later.
	Gaps        int64         `json:"gaps"`
	LongestGaps []cadence.Gap `json:"longest_gaps,omitempty"`
}

// finish writes links and manifest.
func (e *export) finish(ctx context.Context) (job.Result, error) {
	m, err := e.manifest(ctx)
	if err != nil {
		return job.Result{}, err
	}
	bucket := e.Places.Exports.Bucket
	var links strings.Builder
	for _, key := range append([]string{e.folder + manifestName}, keysOf(m.Parts)...) {
		link, err := e.Store.Link(ctx, bucket, key, e.spec.LinkLife.Std())
		if err != nil {
			return job.Result{}, err
		}
		links.WriteString(link + "\n")
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return job.Result{}, fmt.Errorf("encode manifest: %w", err)
	}
	for _, object := range []objects.Object{
		{Key: e.folder + linksName, Data: []byte(links.String()), ContentType: "text/plain; charset=utf-8"},
		{Key: e.folder + manifestName, Data: append(text, '\n'), ContentType: "application/json"},
	} {
		if err := ctx.Err(); err != nil {
			return job.Result{}, err
		}
		object.Bucket = bucket
		if _, err := e.Store.Put(ctx, object); err != nil {
			return job.Result{}, err
		}
	}
	ends := time.Now().Add(e.spec.LinkLife.Std()).UTC().Truncate(time.Second)
	link, err := e.Store.Link(ctx, bucket, e.folder+linksName, e.spec.LinkLife.Std())
	if err != nil {
		return job.Result{}, err
	}
	return e.result(e.summary(), func(r *Report) {
		r.Manifest, r.Link, r.LinkEnds = e.folder+manifestName, link, ends
		r.First, r.Last = firstAndLast(m.Series)
	}), nil
}

func keysOf(parts []Part) (keys []string) {
	for _, p := range parts {
		keys = append(keys, p.Key)
	}
	return keys
}

// manifest is made of the parts that there are.
func (e *export) manifest(ctx context.Context) (Manifest, error) {
	m := Manifest{
		Format: manifestFormat, OrganizationID: e.organization.GetId(), Licence: e.spec.Licence, Question: e.spec, Notes: e.notes,
		Series: make([]SeriesReport, len(e.series)), Parts: []Part{},
	}
	for i, s := range e.series {
		m.Series[i].Series = s
	}
	bucket := e.Places.Exports.Bucket
	for info, err := range e.Store.List(ctx, bucket, e.folder) {
		if err != nil {
			return m, err
		}
		if name := strings.TrimPrefix(info.Key, e.folder); name == manifestName || name == linksName {
			continue
		}
		if info, err = e.Store.Stat(ctx, bucket, info.Key); err != nil {
			return m, err
		}
		part, err := partOf(info)
		if err != nil {
			return m, err
		}
		if part.Series >= len(e.series) || info.Key != e.partName(len(m.Parts)+1, part.Series) {
			return m, job.Fail(errclass.Conflict, "object %s/%s is not part %d of this export", bucket, info.Key, len(m.Parts)+1)
		}
		m.Parts = append(m.Parts, part)
		m.Series[part.Series].add(part)
	}
	if len(m.Parts) != e.at.Parts {
		return m, job.Fail(errclass.ObjectMissing, "%d parts are below %s/%s, and %d were written: the others were removed", len(m.Parts), bucket, e.folder, e.at.Parts)
	}
	return m, nil
}

func (s *SeriesReport) add(p Part) {
	if s.Parts == 0 {
		s.First = p.First
	}
	s.Last = p.Last
	s.Parts++
	s.Rows += p.Rows
	s.Values += p.Values
	s.Gaps += p.Gaps
	s.LongestGaps = cadence.Longest(append(s.LongestGaps, p.LongestGaps...))
}

func firstAndLast(series []SeriesReport) (first, last time.Time) {
	for _, s := range series {
		if s.Parts > 0 && (first.IsZero() || s.First.Before(first)) {
			first = s.First
		}
		last = later(last, s.Last)
	}
	return first, last
}
