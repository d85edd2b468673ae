package platform

import (
	"context"
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Need is the error of a job type on a worker that has no client.
func Need(c *Client) error {
	if c != nil {
		return nil
	}
	return job.Fail(errclass.NoPlatform, "this worker has no Platform API: set %s and %s", EnvURL, EnvToken)
}

// Pages reads one page of a list after another.
func Pages(read func(token string) (next string, err error)) error {
	for token := ""; ; {
		next, err := read(token)
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// pageSize is how many stations are asked for at a time: an answer has at most 4 MiB.
const pageSize = 200

// Stations lists the stations of all organizations, by id.
func (c *Client) Stations(ctx context.Context) ([]*platformv1.Station, error) {
	return c.stations(ctx, &platformv1.ListStationsRequest{})
}

// StationsLike lists a station, and all others of any organization whose slug is the same
// apart from - and _.
func (c *Client) StationsLike(ctx context.Context, id string) ([]*platformv1.Station, error) {
	return c.stations(ctx, &platformv1.ListStationsRequest{LikeStationId: id})
}

func (c *Client) stations(ctx context.Context, request *platformv1.ListStationsRequest) ([]*platformv1.Station, error) {
	var stations []*platformv1.Station
	request.PageSize = pageSize
	err := Pages(func(token string) (string, error) {
		request.PageToken = token
		page, err := c.Metadata.ListStations(ctx, request)
		stations = append(stations, page.GetStations()...)
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return nil, Explain(err)
	}
	return stations, nil
}

// Explain makes one sentence of the error of a call, with a class.
func Explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	code := connect.CodeOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		code = connect.CodeDeadlineExceeded
	}
	switch code {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted:
		return job.Fail(errclass.PlatformUnreachable, "the Platform API does not answer: %w", err)
	case connect.CodeInternal, connect.CodeUnimplemented, connect.CodeUnknown: // as of a proxy that has no server behind it
		return job.Fail(errclass.PlatformUnreachable, "the Platform API is in trouble: %w", err)
	case connect.CodeUnauthenticated, connect.CodePermissionDenied:
		return job.Fail(errclass.PlatformRefused, "the Platform API refuses the token: %w", err)
	}
	return job.Fail(errclass.PlatformAnswer, "the Platform API answers: %w", err)
}
