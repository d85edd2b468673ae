package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// bookmarkService implements dendra.jobs.v1.BookmarkService.
type bookmarkService struct{ *Server }

// maxBookmarks bounds the bookmarks that a list reads.
const maxBookmarks = 100_000

// ListBookmarks implements the service.
func (s *bookmarkService) ListBookmarks(ctx context.Context, r *jobsv1.ListBookmarksRequest) (*jobsv1.ListBookmarksResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	if r.GetSource() != "" {
		return oneBookmark(ctx, client, r)
	}
	pages := pagesOf[string](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	all, err := client.Bookmarks(ctx, maxBookmarks)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(b pipeline.Bookmark) bool {
		job, _, _ := strings.Cut(b.Key, "/")
		return r.GetJobId() != "" && job != r.GetJobId()
	})
	slices.SortFunc(all, func(a, b pipeline.Bookmark) int { return cmp.Compare(a.Key, b.Key) })
	page, next := after(all, func(b pipeline.Bookmark) string { return b.Key }, place, pageSize(r.GetPageSize()))
	response := &jobsv1.ListBookmarksResponse{}
	if next != "" {
		response.NextPageToken = pages.write(next)
	}
	for _, b := range page {
		response.Bookmarks = append(response.Bookmarks, bookmarkMessage(b))
	}
	return response, nil
}

func oneBookmark(ctx context.Context, client *pipeline.Client, r *jobsv1.ListBookmarksRequest) (*jobsv1.ListBookmarksResponse, error) {
	if r.GetJobId() == "" {
		return nil, badRequest(violation{"job_id", "it is missing, and a source needs it"})
	}
	response := &jobsv1.ListBookmarksResponse{}
	found, err := client.Bookmark(ctx, bookmarkKey(r.GetJobId(), r.GetSource()))
	if err == nil && found.Revision > 0 {
		response.Bookmarks = append(response.Bookmarks, bookmarkMessage(found))
	}
	return response, err
}

// bookmarkKey is the key of a source's bookmark, as its job names it.
func bookmarkKey(jobID, source string) string {
	if station, table, found := strings.Cut(source, "="); found {
		source = pipeline.SafeName(station) + "=" + pipeline.SafeName(table)
	}
	return pipeline.BookmarkKey(jobID, source)
}

func bookmarkMessage(b pipeline.Bookmark) *jobsv1.Bookmark {
	jobID, source, _ := strings.Cut(b.Key, "/")
	return &jobsv1.Bookmark{JobId: jobID, Source: source, Position: timeOf(b.Position), MovedBy: b.UpdatedBy, Revision: int64(b.Revision)}
}

// SetBookmark implements the service.
func (s *bookmarkService) SetBookmark(ctx context.Context, r *jobsv1.SetBookmarkRequest) (*jobsv1.SetBookmarkResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	at := toTime(r.GetPosition())
	if at.Year() < 1980 || at.After(time.Now().Add(24*time.Hour)) {
		return nil, badRequest(violation{"position", "it is before 1980 or in the future"})
	}
	from, err := client.Bookmark(ctx, bookmarkKey(r.GetJobId(), r.GetSource()))
	if err != nil {
		return nil, err
	}
	if r.Revision != nil && r.GetRevision() != int64(from.Revision) {
		return nil, movedBookmark(from.Key)
	}
	next, err := client.SetBookmark(ctx, from, at, "set by "+callerOf(ctx))
	if job.ClassOf(err) == errclass.StaleBookmark {
		return nil, movedBookmark(from.Key)
	}
	if err != nil {
		return nil, err
	}
	return &jobsv1.SetBookmarkResponse{Bookmark: bookmarkMessage(next)}, nil
}

func movedBookmark(key string) error {
	return newError(connect.CodeAborted, etagMismatch, "bookmark %s was moved meanwhile: look again", key)
}
