package api

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// alertService implements dendra.jobs.v1.AlertService.
type alertService struct{ *Server }

// silencesOf is the store of silences, which needs NATS.
func (s *alertService) silencesOf() (*alerts.Bucket, error) {
	if s.bucket == nil {
		return nil, newError(connect.CodeUnavailable, backendDown, "silences are kept in NATS, and this server has none")
	}
	return s.bucket, nil
}

func silencesError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, alerts.ErrNotFound):
		return newError(connect.CodeNotFound, notFound, "%s", err)
	case errors.Is(err, alerts.ErrTooMany):
		return newError(connect.CodeResourceExhausted, tooLarge, "%s", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return newError(connect.CodeUnavailable, backendDown, "silences are kept in NATS: %s", err)
	}
}

// ListAlerts implements the service.
func (s *alertService) ListAlerts(ctx context.Context, _ *jobsv1.ListAlertsRequest) (*jobsv1.ListAlertsResponse, error) {
	reader, err := s.overview(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, err := reader.Await(ctx)
	if err != nil {
		return nil, err
	}
	return &jobsv1.ListAlertsResponse{Alerts: snapshot.Overview.GetAlerts()}, nil
}

// maxSilence bounds a silence: one that nobody ends hides what is wrong.
const maxSilence = 90 * 24 * time.Hour

// CreateSilence implements the service.
func (s *alertService) CreateSilence(ctx context.Context, r *jobsv1.CreateSilenceRequest) (*jobsv1.CreateSilenceResponse, error) {
	bucket, err := s.silencesOf()
	if err != nil {
		return nil, err
	}
	asked, now := r.GetSilence(), time.Now().UTC()
	end := asked.GetEndTime().AsTime()
	switch {
	case asked.GetEndTime().CheckValid() != nil || !end.After(now):
		return nil, badRequest(violation{"silence.end_time", "it is not later than now"})
	case end.Sub(now) > maxSilence:
		return nil, badRequest(violation{"silence.end_time", "a silence ends within 90 days"})
	case asked.GetName() != "":
		return nil, badRequest(violation{"silence.name", "the server sets it"})
	}
	silence := alerts.Silence{
		Name: rand.Text()[:12], Object: asked.GetObject(), Reason: asked.GetReason(), Creator: callerOf(ctx), Created: now, End: end,
	}
	if asked.GetRule() != jobsv1.AlertRule_ALERT_RULE_UNSPECIFIED {
		silence.Rule = readmodel.RuleWord(asked.GetRule())
	}
	if err := bucket.CreateSilence(ctx, silence); err != nil {
		return nil, silencesError(err)
	}
	return &jobsv1.CreateSilenceResponse{Silence: silenceMessage(silence)}, nil
}

func silenceMessage(s alerts.Silence) *jobsv1.Silence {
	return &jobsv1.Silence{
		Name: s.Name, Rule: readmodel.RuleOf(s.Rule), Object: s.Object, Reason: s.Reason, Creator: s.Creator,
		CreateTime: timestamppb.New(s.Created), EndTime: timestamppb.New(s.End),
	}
}

// ListSilences implements the service.
func (s *alertService) ListSilences(ctx context.Context, _ *jobsv1.ListSilencesRequest) (*jobsv1.ListSilencesResponse, error) {
	bucket, err := s.silencesOf()
	if err != nil {
		return nil, err
	}
	list, err := bucket.Silences(ctx, time.Now())
	if err != nil {
		return nil, silencesError(err)
	}
	response := &jobsv1.ListSilencesResponse{}
	for _, silence := range list {
		response.Silences = append(response.Silences, silenceMessage(silence))
	}
	return response, nil
}

// DeleteSilence implements the service.
func (s *alertService) DeleteSilence(ctx context.Context, r *jobsv1.DeleteSilenceRequest) (*jobsv1.DeleteSilenceResponse, error) {
	bucket, err := s.silencesOf()
	if err != nil {
		return nil, err
	}
	if err := bucket.DeleteSilence(ctx, r.GetName()); err != nil {
		return nil, silencesError(err)
	}
	return &jobsv1.DeleteSilenceResponse{}, nil
}
