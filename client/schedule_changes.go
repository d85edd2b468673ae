package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// scheduleService is what the Temporal API has for schedules that exist.
type scheduleService interface {
	DescribeSchedule(context.Context, *workflowservice.DescribeScheduleRequest, ...grpc.CallOption) (*workflowservice.DescribeScheduleResponse, error)
	UpdateSchedule(context.Context, *workflowservice.UpdateScheduleRequest, ...grpc.CallOption) (*workflowservice.UpdateScheduleResponse, error)
	PatchSchedule(context.Context, *workflowservice.PatchScheduleRequest, ...grpc.CallOption) (*workflowservice.PatchScheduleResponse, error)
}

// schedules changes the schedules of jobs, and is the one way to do so. The server
// answers a request before it acts, and reports none that it drops: an update made
// for a state that has passed, and a patch (a trigger, a backfill) or an update that
// is followed by another of its kind at once. So each is read back, and made again
// until it shows.
//
// Errors of the service are given as they are.
type schedules struct {
	service   scheduleService
	namespace string
	identity  string // of who asks, in histories
}

const (
	// maxScheduleChange bounds how long a change is asked for. A task of a Schedule that is lost
	// costs ten seconds, and on a busy server several are lost in a row.
	maxScheduleChange = time.Minute
	// updateShows is how long an update may take to show before it is made again,
	// which is harmless: it carries the conflict token of what it was made for.
	updateShows = 2 * time.Second
	// patchShows is how long a patch may take to show before it is looked into.
	patchShows = 300 * time.Millisecond
	// hearing is left of a caller's own time when a change is given up, so that the
	// caller hears of it.
	hearing = 2 * time.Second
	// unreadable is how long a server may be too busy to be read.
	unreadable = 10 * time.Second
)

var errNotTaken = fmt.Errorf("%w: it did not take the change", ErrSlow)

// describe reads a schedule. The server reads its search attributes first and then the rest:
// where they belong to different definitions, it is read again.
func (s schedules) describe(ctx context.Context, jobID string) (*workflowservice.DescribeScheduleResponse, error) {
	const most = 3
	for try := 1; ; try++ {
		now, err := s.service.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{
			Namespace: s.namespace, ScheduleId: contract.ScheduleID(jobID),
		})
		action := now.GetSchedule().GetAction().GetStartWorkflow()
		if err != nil || try == most || definitionHashOf(now.GetSearchAttributes()) == definitionHashOf(action.GetSearchAttributes()) {
			return now, err
		}
	}
}

func definitionHashOf(attributes *commonpb.SearchAttributes) string {
	return temporalclient.Attribute(attributes, contract.AttributeDefinitionHash.GetName())
}

// scheduleEdit is what a schedule shall become.
type scheduleEdit struct {
	schedule *schedulepb.Schedule
	// attributes are its search attributes; nil keeps those that it has.
	attributes *commonpb.SearchAttributes
	// memo is that of the schedule itself; nil keeps the one that it has.
	memo *commonpb.Memo
	// refused, if any, is called when someone else was faster.
	refused func()
}

// setPauseEnd writes when the pause ends into the search attributes, which are otherwise those
// that are given; the zero time says that it does not end by itself.
func (e *scheduleEdit) setPauseEnd(attributes *commonpb.SearchAttributes, end time.Time) error {
	fields := maps.Clone(attributes.GetIndexedFields())
	delete(fields, contract.AttributePauseEnd.GetName())
	if !end.IsZero() {
		encoded, err := temporalclient.EncodeAttributes(temporal.NewSearchAttributes(contract.AttributePauseEnd.ValueSet(contract.FormatPauseEnd(end))))
		if err != nil {
			return err
		}
		maps.Copy(fields, encoded.GetIndexedFields())
	}
	e.attributes = &commonpb.SearchAttributes{IndexedFields: fields}
	return nil
}

// change makes a schedule what edit makes of it. It reads the schedule and calls
// edit, which may change what it is given, as often as someone else was faster or a
// change was lost, until edit gives nil: the schedule is as it shall be. It gives up
// after a minute, or two seconds before the deadline of ctx.
func (s schedules) change(ctx context.Context, jobID string, edit func(now *workflowservice.DescribeScheduleResponse) (*scheduleEdit, error)) error {
	within, cancel := giveUpAfter(ctx, maxScheduleChange)
	defer cancel()
	for {
		done, err := s.changeOnce(within, jobID, edit)
		switch {
		case done:
			return err
		case within.Err() != nil && ctx.Err() == nil:
			return errNotTaken
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// giveUpAfter bounds a change. It ends before the caller's own time does.
func giveUpAfter(ctx context.Context, longest time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		longest = min(longest, time.Until(deadline)-hearing)
	}
	return context.WithTimeout(ctx, longest)
}

// changeOnce makes one try of a change. It is done when edit says so, with its error.
func (s schedules) changeOnce(
	ctx context.Context, jobID string, edit func(now *workflowservice.DescribeScheduleResponse) (*scheduleEdit, error),
) (done bool, err error) {
	now, err := s.describe(ctx, jobID)
	if err != nil {
		return false, err
	}
	wanted, err := edit(now)
	if err != nil || wanted == nil {
		return true, err
	}
	_, err = s.service.UpdateSchedule(ctx, &workflowservice.UpdateScheduleRequest{
		Namespace: s.namespace, ScheduleId: contract.ScheduleID(jobID), Schedule: wanted.schedule, SearchAttributes: wanted.attributes, Memo: wanted.memo,
		ConflictToken: now.GetConflictToken(), Identity: s.identity, RequestId: rand.Text(),
	})
	if conflicts(err) {
		if wanted.refused != nil {
			wanted.refused()
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Whoever it was that changed it: the next look shows.
	_, err = s.shows(ctx, jobID, updateShows, func(later *workflowservice.DescribeScheduleResponse) bool {
		return !bytes.Equal(later.GetConflictToken(), now.GetConflictToken())
	})
	return false, err
}

// conflicts reports whether a schedule has changed since it was described, where a server
// says so.
func conflicts(err error) bool {
	var failed *serviceerror.FailedPrecondition
	return errors.As(err, &failed) && strings.Contains(failed.Message, "conflict token")
}

// shows reads a schedule until the condition holds, for so long at most. It reads on
// while the server is too busy to answer: what was asked for has been taken.
func (s schedules) shows(ctx context.Context, jobID string, within time.Duration, condition func(*workflowservice.DescribeScheduleResponse) bool) (bool, error) {
	const first, most = 10 * time.Millisecond, 200 * time.Millisecond
	began := time.Now()
	for wait := first; ; wait = min(2*wait, most) {
		now, err := s.describe(ctx, jobID)
		switch took := time.Since(began); {
		case err == nil && condition(now):
			return true, nil
		case err == nil && took > within:
			return false, nil
		case err != nil && (took > unreadable || !passing(err)):
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// request makes a patch, which must not be carried out twice, until it shows. For each
// try, next gives the patch, and how to see in the schedule before and now that it was
// taken. It gives up after two minutes, or two seconds before the deadline of ctx; the second
// half of that is for finding out about the last try.
func (s schedules) request(ctx context.Context, jobID string, next func() (*schedulepb.SchedulePatch, taken)) error {
	ctx, cancel := giveUpAfter(ctx, 2*maxScheduleChange)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for last := time.Now().Add(time.Until(deadline) / 2); ; {
		before, err := s.describe(ctx, jobID)
		if err != nil {
			return err
		}
		patch, taken := next()
		if _, err := s.service.PatchSchedule(ctx, &workflowservice.PatchScheduleRequest{
			Namespace: s.namespace, ScheduleId: contract.ScheduleID(jobID), Patch: patch, Identity: s.identity, RequestId: rand.Text(),
		}); err != nil {
			if ctx.Err() != nil {
				return outcomeUnknown(err)
			}
			return err
		}
		ok, err := s.taken(ctx, jobID, func(now *workflowservice.DescribeScheduleResponse) bool { return taken(before, now) })
		if ok || err != nil {
			return err
		}
		if !time.Now().Before(last) {
			return errNotTaken
		}
	}
}

// outcomeUnknown is an error after which a request may still be carried out.
func outcomeUnknown(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (%w)", ErrOutcomeUnknown, err)
}

// taken finds out whether a schedule has taken the patch that it was sent. Its error
// says that this is not known.
func (s schedules) taken(ctx context.Context, jobID string, shown func(now *workflowservice.DescribeScheduleResponse) bool) (bool, error) {
	if ok, err := s.shows(ctx, jobID, patchShows, shown); ok || err != nil {
		return ok, outcomeUnknown(err)
	}
	if err := s.passBy(ctx, jobID); err != nil {
		return false, outcomeUnknown(err)
	}
	now, err := s.describe(ctx, jobID)
	switch {
	case err != nil:
		return false, outcomeUnknown(err)
	case shown(now):
		return true, nil
	case now.GetInfo().GetBufferSize() > 0 || now.GetInfo().GetStateSizeBytes() > 0:
		// It may be among what waits. Schedules that are no workflows, which report
		// their size, do not go by the times of triggers.
		return false, ErrOutcomeUnknown
	}
	return false, nil
}

// taken says that a schedule has taken a request.
type taken func(before, now *workflowservice.DescribeScheduleResponse) bool

// passBy returns once a schedule has looked at all that it was sent before. It does
// so at once, and in order, so that it is enough to see an update pass, anyone's.
func (s schedules) passBy(ctx context.Context, jobID string) error {
	var token []byte
	return s.change(ctx, jobID, func(now *workflowservice.DescribeScheduleResponse) (*scheduleEdit, error) {
		if token == nil {
			token = now.GetConflictToken()
		}
		if !bytes.Equal(now.GetConflictToken(), token) {
			return nil, nil //nolint:nilnil // It has passed.
		}
		return &scheduleEdit{schedule: now.GetSchedule()}, nil
	})
}

// scheduleTrigger is what became of a trigger. If neither field is set, a run is
// under way, and the overlap policy lets no other start or wait.
type scheduleTrigger struct {
	// started is the run.
	started *commonpb.WorkflowExecution
	// waits says that it starts when what is under way has ended.
	waits bool
}

// trigger has a schedule start a run now, under an overlap policy; the unspecified
// one is the schedule's own. The run is known by its time, which no other trigger
// has, and which is no time of the job r.
func (s schedules) trigger(ctx context.Context, jobID string, r *job.Recurring, overlap enumspb.ScheduleOverlapPolicy) (scheduleTrigger, error) {
	var out scheduleTrigger
	err := s.request(ctx, jobID, func() (*schedulepb.SchedulePatch, taken) {
		at := timestamppb.New(triggerTime(jobID, r, time.Now()))
		patch := &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{OverlapPolicy: overlap, ScheduledTime: at}}
		return patch, func(before, now *workflowservice.DescribeScheduleResponse) bool {
			out = scheduleTrigger{waits: now.GetInfo().GetBufferSize() > before.GetInfo().GetBufferSize()}
			for _, action := range now.GetInfo().GetRecentActions() {
				if action.GetScheduleTime().AsTime().Equal(at.AsTime()) {
					out = scheduleTrigger{started: action.GetStartWorkflowResult()}
				}
			}
			return out.waits || out.started != nil || now.GetInfo().GetOverlapSkipped() > before.GetInfo().GetOverlapSkipped()
		}
	})
	return out, err
}

// triggerTime is the time of a trigger. A run is named by the second of its time, so
// that a trigger in a second in which the job has a start would take the name of
// that start's run. The next second without one is taken, if there is one soon.
func triggerTime(jobID string, r *job.Recurring, now time.Time) time.Time {
	if r == nil {
		return now
	}
	times, err := r.Times(jobID)
	if err != nil {
		return now
	}
	const soon = 5
	for n := range soon {
		at := now.Add(time.Duration(n) * time.Second)
		if second := at.Truncate(time.Second); !times.Next(second.Add(-time.Second)).Equal(second) {
			return at
		}
	}
	return now
}

// backfill has a schedule start runs for its times from a time up to another, both
// inclusive, one after the other and after what is under way. It returns once the
// schedule has taken the request.
func (s schedules) backfill(ctx context.Context, jobID string, from, to time.Time) error {
	patch := &schedulepb.SchedulePatch{BackfillRequest: []*schedulepb.BackfillRequest{{
		StartTime: timestamppb.New(from), EndTime: timestamppb.New(to), OverlapPolicy: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	}}}
	return s.request(ctx, jobID, func() (*schedulepb.SchedulePatch, taken) {
		return patch, func(before, now *workflowservice.DescribeScheduleResponse) bool {
			known := map[string]bool{}
			for _, action := range before.GetInfo().GetRecentActions() {
				known[action.GetStartWorkflowResult().GetRunId()] = true
			}
			for _, action := range now.GetInfo().GetRecentActions() {
				due := action.GetScheduleTime().AsTime()
				if !known[action.GetStartWorkflowResult().GetRunId()] && !due.Before(from) && !due.After(to) {
					return true
				}
			}
			return now.GetInfo().GetBufferSize() > before.GetInfo().GetBufferSize()
		}
	})
}
