package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// archiveService implements dendra.jobs.v1.ArchiveService.
type archiveService struct{ *Server }

// open gives the archive that a request names.
func (s *archiveService) open(place *jobsv1.ArchivePlace) (archive.Archive, error) {
	store, err := s.store()
	return archive.Archive{Store: store, Bucket: cmp.Or(place.GetBucket(), archive.DefaultBucket), Prefix: place.GetPrefix()}, err
}

// store is the S3 store.
func (s *Server) store() (*objects.Store, error) {
	if s.Store == nil {
		return nil, newError(connect.CodeUnavailable, backendDown, "this server has no S3 store, which archives and uploads need")
	}
	store, err := s.Store()
	if err != nil {
		return nil, newError(connect.CodeUnavailable, backendDown, "%s", oneLine(err))
	}
	return store, nil
}

// MaxAudits bounds the audits of archives that a server has under way: each reads what is
// said of all messages.
const MaxAudits = 2

// Bounds of what an audit sends.
const (
	maxFindings   = 10_000
	progressEvery = time.Second
)

// AuditArchive implements the service.
func (s *archiveService) AuditArchive(ctx context.Context, r *jobsv1.AuditArchiveRequest, stream jobsv1connect.ArchiveServiceAuditArchiveServerStream) error {
	select {
	case s.audits <- struct{}{}:
		defer func() { <-s.audits }()
	default:
		return newError(connect.CodeResourceExhausted, tooManyCalls,
			"%d audits of archives are under way, which is the limit of this server: try again when one has ended", MaxAudits)
	}
	opened, err := s.open(r.GetPlace())
	if err != nil {
		return err
	}
	auditing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := time.Now().Add(progressEvery)
	options := archive.AuditOptions{Deep: r.GetDeep(), Progress: func(done, total int) { // One call at a time.
		if now := time.Now(); now.After(next) {
			next = now.Add(progressEvery)
			if err := stream.Send(&jobsv1.AuditArchiveResponse{Done: int64(done), Total: int64(total)}); err != nil {
				stop(err)
			}
		}
	}}
	if !r.GetOffline() {
		if options.Stream, err = s.pipeline(); err != nil {
			return err
		}
	}
	report, err := opened.Audit(auditing, options)
	switch {
	case errors.Is(err, pipeline.ErrNoStream):
		return newError(connect.CodeNotFound, notFound, "there is no stream %s on %s; --offline audits the archive alone", pipeline.StreamRaw, options.Stream.Address())
	case err != nil:
		return causeOf(auditing, err)
	}
	return stream.Send(&jobsv1.AuditArchiveResponse{Report: reportMessage(report)})
}

func reportMessage(r archive.Report) *jobsv1.ArchiveReport {
	m := &jobsv1.ArchiveReport{Place: &jobsv1.ArchivePlace{Bucket: r.Bucket, Prefix: r.Prefix}, Deep: r.Deep, FindingCount: int64(len(r.Findings))}
	for _, l := range r.Incarnations {
		one := &jobsv1.ArchivedStream{
			Name: string(l.Incarnation), Batches: int64(l.Batches), Objects: int64(l.Objects), Messages: l.Messages, Replays: l.Replays,
			ContentSize: l.Bytes, Size: l.Size, LastSequence: int64(l.Last), LastTime: timeOf(l.To),
		}
		for _, gone := range l.Gone {
			one.Gone = append(one.Gone, rangeMessage(gone))
		}
		if l.Live != nil {
			one.Present = &jobsv1.PresentStream{
				Held: rangeMessage(archive.Range{First: l.Live.First, Last: l.Live.Last}), Waiting: int64(l.Live.Waiting), UnderWay: int64(l.Live.UnderWay),
				AckFloors: map[string]int64{},
			}
			for consumer, floor := range l.Live.AckFloors {
				one.Present.AckFloors[consumer] = int64(floor)
			}
		}
		m.Streams = append(m.Streams, one)
	}
	for _, f := range r.Findings[:min(len(r.Findings), maxFindings)] {
		one := &jobsv1.ArchiveFinding{Kind: string(f.Kind), Stream: string(f.Incarnation), Key: f.Key, Text: f.Text}
		if f.Numbers != nil {
			one.Sequences = rangeMessage(*f.Numbers)
		}
		m.Findings = append(m.Findings, one)
	}
	return m
}

func rangeMessage(r archive.Range) *jobsv1.SequenceRange {
	return &jobsv1.SequenceRange{First: int64(r.First), Last: int64(r.Last)}
}

// archiveFilter is a filter of a request.
func archiveFilter(m *jobsv1.ArchiveFilter) (archive.Filter, error) {
	f := archive.Filter{Organization: m.GetOrganization(), Source: m.GetSource(), From: toTime(m.GetStartTime()), To: toTime(m.GetEndTime())}
	switch {
	case f.Source != "" && f.Organization == "":
		return f, badRequest(violation{"filter.source", "it needs an organization"})
	case !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To):
		return f, badRequest(violation{"filter.start_time", "it is not before end_time"})
	}
	return f, nil
}

// ListArchiveObjects implements the service.
func (s *archiveService) ListArchiveObjects(ctx context.Context, r *jobsv1.ListArchiveObjectsRequest) (*jobsv1.ListArchiveObjectsResponse, error) {
	f := r.GetFilter()
	pages := pagesOf[string](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	filter, err := archiveFilter(f)
	if err != nil {
		return nil, err
	}
	opened, err := s.open(r.GetPlace())
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListArchiveObjectsResponse{}
	for o, err := range opened.Find(ctx, filter, place) {
		if err != nil {
			return nil, err
		}
		if have := len(response.GetObjects()); have == pageSize(r.GetPageSize()) {
			response.NextPageToken = pages.write(response.GetObjects()[have-1].GetKey())
			break
		}
		response.Objects = append(response.Objects, &jobsv1.ArchiveObject{
			Key: o.Key, Organization: o.Organization, Source: o.Source, Hour: timeOf(o.Hour), Stream: string(o.Incarnation),
			Sequences: rangeMessage(archive.Range{First: o.First, Last: o.Last}), Size: o.Size,
		})
	}
	return response, nil
}

// maxLines bounds a message of lines, in bytes.
const maxLines = 512 << 10

// ReadArchive implements the service.
func (s *archiveService) ReadArchive(ctx context.Context, r *jobsv1.ReadArchiveRequest, stream jobsv1connect.ArchiveServiceReadArchiveServerStream) error {
	filter, err := archiveFilter(r.GetFilter())
	if err != nil {
		return err
	}
	if _, ok := archive.ParseDataKey(r.GetKey()); !ok && r.GetKey() != "" {
		return badRequest(violation{"", fmt.Sprintf("%.200s is not the key of an object with messages: starter archive list shows them", r.GetKey())})
	}
	opened, err := s.open(r.GetPlace())
	if err != nil {
		return err
	}
	send := func(key string) error {
		lines, err := linesOf(ctx, opened, filter, key)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(lines, maxLines) {
			if err := stream.Send(&jobsv1.ReadArchiveResponse{Lines: part}); err != nil {
				return err //nolint:wrapcheck // It is the stream's.
			}
		}
		return nil
	}
	if r.GetKey() != "" {
		return send(r.GetKey())
	}
	for o, err := range opened.Find(ctx, filter, "") {
		if err == nil {
			err = send(o.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linesOf are the lines of an object that are within the times of a filter.
func linesOf(ctx context.Context, in archive.Archive, filter archive.Filter, key string) ([]byte, error) {
	content, err := in.Read(ctx, key)
	if err != nil || filter.From.IsZero() && filter.To.IsZero() {
		return content, err
	}
	var lines []byte
	for m, err := range in.Messages(key, content) {
		if err == nil && filter.Takes(m.Time) {
			lines, err = archive.AppendLine(lines, m)
		}
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}
