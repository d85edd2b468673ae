package api

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// StopJob implements the service.
func (s *jobService) StopJob(ctx context.Context, r *jobsv1.StopJobRequest) (*jobsv1.StopJobResponse, error) {
	return &jobsv1.StopJobResponse{}, s.Client.Jobs.Stop(ctx, r.GetId(), reasonOr(ctx, r.GetReason()))
}

// RestartJob implements the service.
func (s *jobService) RestartJob(ctx context.Context, r *jobsv1.RestartJobRequest) (*jobsv1.RestartJobResponse, error) {
	return &jobsv1.RestartJobResponse{}, s.Client.Jobs.Restart(ctx, r.GetId(), reasonOr(ctx, r.GetReason()))
}

// PauseJob implements the service.
func (s *jobService) PauseJob(ctx context.Context, r *jobsv1.PauseJobRequest) (*jobsv1.PauseJobResponse, error) {
	in := pauseRequest(reasonOr(ctx, r.GetReason()), r.GetDuration())
	before, err := s.Client.Jobs.PauseSeeing(ctx, r.GetId(), in)
	return &jobsv1.PauseJobResponse{PreviousReason: before.Reason, EndTime: timeOf(in.End)}, err
}

// pauseRequest is a pause that ends by itself after a duration, nil for one without an end.
func pauseRequest(reason string, lasts *durationpb.Duration) contract.PauseRequest {
	in := contract.PauseRequest{Reason: reason}
	if lasts != nil {
		in.End = time.Now().Add(lasts.AsDuration()).Truncate(time.Second)
	}
	return in
}

// ResumeJob implements the service.
func (s *jobService) ResumeJob(ctx context.Context, r *jobsv1.ResumeJobRequest) (*jobsv1.ResumeJobResponse, error) {
	before, err := s.Client.Jobs.ResumeSeeing(ctx, r.GetId(), reasonOr(ctx, r.GetReason()))
	return &jobsv1.ResumeJobResponse{Unchanged: before.Unchanged, FailuresReset: !before.Paused && before.BacksOff}, err
}

// SkipNextStart implements the service.
func (s *jobService) SkipNextStart(ctx context.Context, r *jobsv1.SkipNextStartRequest) (*jobsv1.SkipNextStartResponse, error) {
	result, err := s.Client.Jobs.SkipNext(ctx, r.GetId(), cmp.Or(r.GetSkippedBy(), callerOf(ctx)))
	if err != nil {
		return nil, err
	}
	return &jobsv1.SkipNextStartResponse{SkippedTime: timeOf(result.Skipped), NextStartTime: timeOf(result.Next)}, nil
}

// BackfillJob implements the service.
func (s *jobService) BackfillJob(ctx context.Context, r *jobsv1.BackfillJobRequest) (*jobsv1.BackfillJobResponse, error) {
	from, to := r.GetStartTime().AsTime(), toTime(r.GetEndTime())
	if to.IsZero() {
		to = time.Now()
	}
	switch {
	case from.After(to):
		return nil, badRequest(violation{"end_time", "it is before start_time"})
	case to.After(time.Now()):
		return nil, badRequest(violation{"end_time", "it is not past"})
	}
	backfill := s.Client.Jobs.Backfill
	if r.GetValidateOnly() {
		backfill = s.Client.Jobs.BackfillStarts
	}
	starts, err := backfill(ctx, r.GetId(), from, to)
	return &jobsv1.BackfillJobResponse{StartTimes: timesOf(starts)}, err
}

// ListNextStarts implements the service.
func (s *jobService) ListNextStarts(ctx context.Context, r *jobsv1.ListNextStartsRequest) (*jobsv1.ListNextStartsResponse, error) {
	count := int(r.GetCount())
	if count == 0 {
		count = 10
	}
	next, err := s.Client.Jobs.NextStarts(ctx, r.GetId(), count)
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListNextStartsResponse{
		StartTimes: timesOf(next.Starts), TimeZone: next.TimeZone, Paused: next.Paused, PauseReason: next.PauseReason, PauseEndTime: timeOf(next.PauseEnd),
		HeldUntilTime: timeOf(next.HeldUntil),
	}
	for _, skip := range next.Skipped {
		response.Skipped = append(response.Skipped, &jobsv1.SkippedStart{StartTime: timeOf(skip.At), SkippedBy: skip.By})
	}
	return response, nil
}

// longestUpcoming is how far ahead starts are listed.
const longestUpcoming = 366 * 24 * time.Hour

// ListUpcomingStarts implements the service.
func (s *jobService) ListUpcomingStarts(ctx context.Context, r *jobsv1.ListUpcomingStartsRequest) (*jobsv1.ListUpcomingStartsResponse, error) {
	terms, err := readFilter(r.GetFilter(), upcomingFields())
	if err != nil {
		return nil, err
	}
	if r.GetEndTime().AsTime().After(time.Now().Add(longestUpcoming)) {
		return nil, badRequest(violation{"end_time", "it is more than a year ahead"})
	}
	exact := firstExact(terms)
	upcoming, err := s.Client.Jobs.Upcoming(ctx, r.GetEndTime().AsTime(), client.JobFilter{Type: exact["type"], Owner: exact["owner"]})
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListUpcomingStartsResponse{PeakTime: timeOf(upcoming.Peak), PeakCount: int32(upcoming.PeakCount)}
	for _, start := range upcoming.Starts {
		response.Starts = append(response.Starts, &jobsv1.UpcomingStart{
			StartTime: timeOf(start.At), JobId: start.JobID, JobType: start.Type, Owner: start.Owner,
		})
	}
	return response, nil
}

// ListMissedStarts implements the service.
func (s *jobService) ListMissedStarts(ctx context.Context, r *jobsv1.ListMissedStartsRequest) (*jobsv1.ListMissedStartsResponse, error) {
	terms, err := readFilter(r.GetFilter(), missedFields())
	if err != nil {
		return nil, err
	}
	until := toTime(r.GetEndTime())
	if !until.IsZero() && until.Before(r.GetStartTime().AsTime()) {
		return nil, badRequest(violation{"end_time", "it is before start_time"})
	}
	tags, possible := tagsOf(terms)
	if !possible {
		return &jobsv1.ListMissedStartsResponse{}, nil
	}
	exact := firstExact(terms)
	report, err := s.Client.Jobs.Missed(ctx, client.MissedFilter{
		JobID: exact["id"], Type: exact["type"], Owner: exact["owner"], Tags: tags,
		Since: r.GetStartTime().AsTime(), Until: until,
	})
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ListMissedStartsResponse{
		EndTime: timeOf(report.Until), MissedStarts: missedStarts(report.Missed), LeftOutStarts: missedStarts(report.LeftOut),
	}
	for _, counts := range report.Jobs {
		response.Counts = append(response.Counts, &jobsv1.StartCounts{
			JobId: counts.JobID, StartTime: timeOf(counts.From), Scheduled: int32(counts.Scheduled), Runs: int32(counts.Runs),
			Waiting: int32(counts.Waiting), Missed: int32(counts.Missed), LeftOut: int32(counts.LeftOut),
		})
	}
	return response, nil
}

func missedStarts(starts []client.MissedStart) []*jobsv1.MissedStart {
	var messages []*jobsv1.MissedStart
	for _, start := range starts {
		messages = append(messages, &jobsv1.MissedStart{
			JobId: start.JobID, JobType: start.Type, Owner: start.Owner, StartTime: timeOf(start.Scheduled),
			Reason: enumOf[jobsv1.MissedReason](start.Reason), Detail: start.Detail,
		})
	}
	return messages
}
