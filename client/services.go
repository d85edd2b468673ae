package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// ServiceState is the state of a service.
type ServiceState string

// The states of a service.
const (
	ServiceServing  ServiceState = "serving"
	ServiceDraining ServiceState = "draining" // ends its runs and takes no more
	ServiceLost     ServiceState = "lost"     // fell silent without withdrawing its announcement
)

// LiveService is a service as Temporal knows it.
type LiveService struct {
	contract.Service
	contract.ServiceHeartbeat
	State ServiceState `json:"state"`
	// LastSeen is the time of the last heartbeat, by the clock of Temporal.
	LastSeen time.Time `json:"last_seen"`
}

// AllStuck reports whether handlers that were given up hold all slots: the service takes
// nothing until its process is restarted, though its state is serving.
func (s *LiveService) AllStuck() bool { return s.StuckHandlers > 0 && s.StuckHandlers >= s.Slots }

// errUnreadable says that something under the name of a service is no announcement
// that this version can read.
var errUnreadable = errors.New("it cannot be read")

// Services are the services that Temporal knows, by worker type and name.
type Services struct {
	Live []LiveService
	// Lost are those that fell silent and have not come back under their names.
	Lost []LiveService
	// Unreadable joins the errors of announcements that cannot be read: another look will
	// not read them either.
	Unreadable error
}

// ListedService is a service as a list of activities has it.
type ListedService struct {
	ID    string
	RunID string
	// Lost says that it fell silent.
	Lost bool
}

// ListServices lists the services that live, and those that fell silent since a time, of
// each its latest announcement; the zero time means none of those. They are in the order of
// their ids.
func (c *WorkerClient) ListServices(ctx context.Context, lostSince time.Time) ([]ListedService, error) {
	status := "ExecutionStatus = 'Running'"
	if !lostSince.IsZero() {
		status += fmt.Sprintf(" OR (ExecutionStatus = 'TimedOut' AND CloseTime > %s)", quote(lostSince.UTC().Format(time.RFC3339)))
	}
	found, err := c.temporal.ListActivities(ctx, sdk.ListActivitiesOptions{
		Query: fmt.Sprintf("ActivityType = '%s' AND (%s)", contract.ServiceType, status),
	})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", ofServices(err))
	}
	latest := map[string]*sdk.ActivityExecutionInfo{}
	for info, err := range found.Results {
		if err != nil {
			return nil, fmt.Errorf("list services: %w", ofServices(err))
		}
		if known := latest[info.ActivityID]; contract.IsServiceID(info.ActivityID) && (known == nil || known.ScheduleTime.Before(info.ScheduleTime)) {
			latest[info.ActivityID] = info
		}
	}
	var services []ListedService
	for _, id := range slices.Sorted(maps.Keys(latest)) {
		info := latest[id]
		services = append(services, ListedService{ID: id, RunID: info.ActivityRunID, Lost: info.Status == enumspb.ACTIVITY_EXECUTION_STATUS_TIMED_OUT})
	}
	return services, nil
}

// Services describes the services of [WorkerClient.ListServices], all at once. Beside the
// error of those that cannot be described it gives the others.
func (c *WorkerClient) Services(ctx context.Context, lostSince time.Time) (Services, error) {
	listed, err := c.ListServices(ctx, lostSince)
	if err != nil {
		return Services{}, err
	}
	var known descriptions
	for _, service := range listed {
		known.left = append(known.left, service.ID)
	}
	for _, timeout := range describeTimeouts {
		known.ask(ctx, c.temporal, timeout)
	}
	if n := len(known.left); n > 0 {
		err = fmt.Errorf("%d of %d services cannot be described: %w", n, len(listed), known.why)
	}
	return known.sorted(), err
}

// Service describes a service, nil if it is not live and was not lost.
func (c *WorkerClient) Service(ctx context.Context, id string) (*LiveService, error) {
	return describeService(ctx, c.temporal, id)
}

// ofServices names the error of a server that has no services.
func ofServices(err error) error {
	if _, unknown := errors.AsType[*serviceerror.Unimplemented](err); unknown {
		return ErrNoServices
	}
	return err
}

// CheckServices gives [ErrNoServices] if the server has none: jobs cannot be bound there.
func (c *WorkerClient) CheckServices(ctx context.Context) error {
	n, err := temporalclient.DescribeNamespace(ctx, c.temporal, c.namespace)
	if err == nil && !n.StandaloneActivities {
		err = ErrNoServices
	}
	return err
}

// describeTimeouts are how long Temporal may take to describe a service, each time that
// it is asked. When a host of a cluster dies, what that host had is not answered for
// some seconds, and must not keep the rest from being asked. The last time is for a
// server that is slow but well, as far as the caller has time.
var describeTimeouts = []time.Duration{500 * time.Millisecond, time.Second, 10 * time.Second}

// descriptions are what is known of some services.
type descriptions struct {
	services   []LiveService
	unreadable []error
	left       []string // ids of those that were not described yet
	why        error    // of one of them
}

// sorted gives them by worker type and name.
func (d *descriptions) sorted() Services {
	slices.SortFunc(d.services, func(a, b LiveService) int { return strings.Compare(a.ID(), b.ID()) })
	slices.SortFunc(d.unreadable, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	all := Services{Unreadable: errors.Join(d.unreadable...)}
	for _, service := range d.services {
		if service.State == ServiceLost {
			all.Lost = append(all.Lost, service)
		} else {
			all.Live = append(all.Live, service)
		}
	}
	return all
}

// ask describes what is left, several at once.
func (d *descriptions) ask(ctx context.Context, c sdk.Client, timeout time.Duration) {
	ids := d.left
	d.left = nil
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(temporalclient.CallLimit)
	for _, id := range ids {
		group.Go(func() error {
			once, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			service, err := describeService(once, c, id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, errUnreadable):
				d.unreadable = append(d.unreadable, err)
			case err != nil:
				d.left, d.why = append(d.left, id), err
			case service != nil:
				d.services = append(d.services, *service)
			}
			return nil
		})
	}
	_ = group.Wait() // Errors are collected one by one.
}

// describeService reads the latest activity of a service. It returns nil for one
// that has ended in peace or has not begun.
func describeService(ctx context.Context, c sdk.Client, id string) (*LiveService, error) {
	handle := c.GetActivityHandle(sdk.GetActivityHandleOptions{ActivityID: id})
	d, err := handle.Describe(ctx, sdk.DescribeActivityOptions{IncludeInput: true, IncludeHeartbeatDetails: true})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil, nil //nolint:nilnil // Past its retention.
	}
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", id, err)
	}
	service := &LiveService{State: ServiceServing, LastSeen: d.LastHeartbeatTime}
	switch {
	case d.Status == enumspb.ACTIVITY_EXECUTION_STATUS_TIMED_OUT && !d.LastStartedTime.IsZero():
		service.State = ServiceLost
	case d.Status != enumspb.ACTIVITY_EXECUTION_STATUS_RUNNING || d.RunState == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED:
		return nil, nil //nolint:nilnil // Not live.
	}
	if service.LastSeen.Unix() <= 0 { // no heartbeat yet
		service.LastSeen = d.LastStartedTime
	}
	if err := d.GetInput(&service.Service); err != nil {
		return nil, fmt.Errorf("%s does not announce a service: %w: %w", id, errUnreadable, err)
	}
	if d.HasHeartbeatDetails() {
		if err := d.GetHeartbeatDetails(&service.ServiceHeartbeat); err != nil {
			return nil, fmt.Errorf("the heartbeat of %s is not that of a service: %w: %w", id, errUnreadable, err)
		}
	}
	if service.Draining && service.State == ServiceServing {
		service.State = ServiceDraining
	}
	return service, nil
}
