package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// JobMessage is a definition on the wire: without etag and state.
func JobMessage(j job.Job) *jobsv1.Job {
	m := &jobsv1.Job{
		Id: j.ID, Type: j.Type, Worker: string(j.Worker), Provider: string(j.Provider), Spec: structOf(j.Spec),
		Paused: j.Options.Paused, Options: optionsMessage(j.Options),
	}
	switch {
	case j.OneShot != nil:
		m.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{StartTime: timeOf(j.OneShot.At)}}
	case j.Recurring != nil:
		m.Mode = &jobsv1.Job_Recurring{Recurring: recurringMessage(*j.Recurring)}
	case j.Continuous != nil:
		m.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{
			Interval: durationpb.New(j.Continuous.Interval.Std()), RestartOnChange: j.Continuous.RestartOnChange,
		}}
	case j.Queued != nil:
		m.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{
			Queue: j.Queued.Queue, OnFailure: enumOf[jobsv1.FailurePolicy](j.Queued.OnFailure),
		}}
	}
	return m
}

func recurringMessage(r job.Recurring) *jobsv1.Recurring {
	m := &jobsv1.Recurring{
		RecurEvery: durationOf(r.RecurEvery), Cron: r.Cron, TimeZone: r.TimeZone, Jitter: durationOf(r.Jitter),
		Overlap: enumOf[jobsv1.OverlapPolicy](r.Overlap), Misfire: enumOf[jobsv1.MisfirePolicy](r.Misfire),
		MaxMissed: int32(r.MaxMissed), CatchupWindow: durationOf(r.CatchupWindow),
		StartTime: timeOf(r.StartAt), EndTime: timeOf(r.EndAt),
		PauseAfterFailures: int32(r.PauseAfterFailures), RetryEvery: durationOf(r.RetryEvery),
	}
	if r.Offset != nil {
		m.Offset = durationpb.New(r.Offset.Std())
	}
	return m
}

func optionsMessage(o job.Options) *jobsv1.JobOptions {
	retries := int32(o.MaxRetryCount)
	m := &jobsv1.JobOptions{
		Description: o.Description, Owner: o.Owner.String(), Tags: o.Tags,
		RunTimeout: durationOf(o.RunTimeout), HeartbeatTimeout: durationOf(o.HeartbeatTimeout), MaxRetryCount: &retries,
		RetryBackoff: &jobsv1.RetryBackoff{
			Initial: durationOf(o.RetryBackoff.Initial), Max: durationOf(o.RetryBackoff.Max), Coefficient: o.RetryBackoff.Coefficient,
		},
		StopGracePeriod: durationOf(o.StopGracePeriod), Bind: o.Bind,
		Failover: enumOf[jobsv1.FailoverPolicy](o.Failover), FailoverAfter: durationOf(o.FailoverAfter),
		Freshness: durationOf(o.Freshness),
	}
	if d := o.Deadline; d != nil {
		m.Deadline = &jobsv1.Deadline{Time: d.Time, TimeZone: d.TimeZone}
	}
	return m
}
