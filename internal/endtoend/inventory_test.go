package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// inventory is all that the servers hold, by name, listed with their own clients. It tells
// what a thing is, as far as that may not change.
type inventory map[string]string

// lasting leaves out what comes and goes by itself.
var (
	recurringRun = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9:]+Z$`)
	// The records of all orchestrators and teardowns; the archive's account of the stream; what
	// NATS knows of loads, rates and documents in Release 2, which stay; logs of runs and the history
	// of changes, which age out.
	passing = regexp.MustCompile(`^(workflow applied/(integration|teardown)$|archive object raw/v1/batches/|KV_(loads|rates|reverse_sync|SAMPLES) |RUN_LOGS |CHANGES )`)
)

func (s *story) inventory(ctx context.Context) (inventory, error) {
	all := inventory{}
	for _, list := range []func(context.Context, func(name, what string)) error{
		s.listTemporal, s.listNATS, s.listObjects, s.listInflux, s.listPlatform,
	} {
		err := list(ctx, func(name, what string) {
			if !passing.MatchString(name) {
				all[name] = what
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *story) listTemporal(ctx context.Context, add func(name, what string)) error {
	api := s.client.Temporal()
	var token []byte
	for {
		page, err := api.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: s.st.Namespace, Query: "ExecutionStatus = 'Running'", NextPageToken: token,
		})
		if err != nil {
			return err
		}
		for _, info := range page.GetExecutions() {
			id := info.GetExecution().GetWorkflowId()
			if recurringRun.MatchString(id) {
				continue
			}
			description, err := api.DescribeWorkflowExecution(ctx, id, "")
			var notFound *serviceerror.NotFound
			if errors.As(err, &notFound) {
				continue // It was deleted: the list lags.
			}
			if err != nil {
				return err
			}
			if now := description.GetWorkflowExecutionInfo(); now.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				add("workflow "+id, "since "+now.GetFirstRunId())
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	schedules, err := api.ScheduleClient().List(ctx, temporal.ScheduleListOptions{})
	if err != nil {
		return err
	}
	for schedules.HasNext() {
		schedule, err := schedules.Next()
		if err != nil {
			return err
		}
		add("schedule "+schedule.ID, "")
	}
	return nil
}

func (s *story) listNATS(ctx context.Context, add func(name, what string)) error {
	js := s.pipeline.JetStream()
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
		if err != nil {
			return err
		}
		for subject, n := range info.State.Subjects {
			what := fmt.Sprint(n, " messages")
			if strings.HasPrefix(name, "KV_") { // A key has its earlier values beside the one in force.
				last, err := stream.GetLastMsgForSubject(ctx, subject)
				if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Header.Get("KV-Operation") != "" {
					continue // It is gone.
				}
				if err != nil {
					return err
				}
				what = "a key"
			}
			if name == pipeline.StreamQuarantine && strings.Contains(subject, ".change.") {
				// A snapshot finds a record once more that was changed since: its digest is another.
				subject, what = subject[:strings.LastIndex(subject, ".")], "messages"
			}
			add(name+" "+subject, what)
		}
		consumers := stream.ListConsumers(ctx)
		for consumer := range consumers.Info() {
			if consumer.Config.Durable != "" {
				add(name+" consumer "+consumer.Name, consumer.Config.FilterSubject)
			}
		}
		if err := consumers.Err(); err != nil {
			return err
		}
	}
	return names.Err()
}

func (s *story) listObjects(ctx context.Context, add func(name, what string)) error {
	for _, bucket := range s.st.Buckets {
		for info, err := range s.store.List(ctx, bucket, "") {
			if err != nil {
				return err
			}
			add(bucket+" object "+info.Key, fmt.Sprintf("%s, %d bytes", info.ETag, info.Size))
		}
	}
	return nil
}

func (s *story) listInflux(ctx context.Context, add func(name, what string)) error {
	config := influx.Config{URL: s.st.Influx}
	databases, err := influx.Databases(ctx, config)
	if err != nil {
		return err
	}
	for _, database := range databases {
		if strings.HasPrefix(database, "_") {
			continue
		}
		add("database "+database, "")
		measurements, err := influx.MeasurementNames(ctx, config, database)
		if err != nil {
			return err
		}
		for _, measurement := range measurements {
			counts, err := influx.Count(ctx, config, database, measurement)
			if err != nil {
				return err
			}
			add("database "+database+" measurement "+measurement, fmt.Sprint(counts))
		}
	}
	return nil
}

func (s *story) listPlatform(ctx context.Context, add func(name, what string)) error {
	tell := func(name string, m proto.Message) error {
		m = proto.CloneOf(m)
		for _, field := range []string{"etag", "modification", "status", "version", "table_discovery_request_time"} { // Orchestrators write some.
			if f := m.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field)); f != nil {
				m.ProtoReflect().Clear(f)
			}
		}
		text, err := protojson.MarshalOptions{}.Marshal(m)
		add("platform "+name, strings.ReplaceAll(string(text), " ", "")) // protojson has spaces as it likes.
		return err
	}
	err := platform.Pages(func(token string) (string, error) {
		page, err := s.users.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageToken: token, ShowDeleted: true})
		for _, o := range page.GetOrganizations() {
			err = errors.Join(err, tell("organization "+o.GetId(), o))
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	err = platform.Pages(func(token string) (string, error) {
		page, err := s.users.Metadata.ListSites(ctx, &platformv1.ListSitesRequest{PageToken: token})
		for _, site := range page.GetSites() {
			err = errors.Join(err, tell("site "+site.GetId(), site))
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	var stations []string
	err = platform.Pages(func(token string) (string, error) {
		page, err := s.users.Metadata.ListStations(ctx, &platformv1.ListStationsRequest{PageToken: token})
		for _, station := range page.GetStations() {
			stations = append(stations, station.GetId())
			err = errors.Join(err, tell("station "+station.GetId(), station))
		}
		return page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	for _, station := range stations {
		err := platform.Pages(func(token string) (string, error) {
			page, err := s.users.Tables.ListTableInfos(ctx, &platformv1.ListTableInfosRequest{StationId: station, PageToken: token})
			for _, table := range page.GetTableInfos() {
				err = errors.Join(err, tell("table "+table.GetId(), table))
			}
			return page.GetNextPageToken(), err
		})
		if err != nil {
			return err
		}
	}
	return platform.Pages(func(token string) (string, error) {
		page, err := s.users.Integrations.ListIntegrationConfigs(ctx, &platformv1.ListIntegrationConfigsRequest{PageToken: token})
		for _, config := range page.GetIntegrationConfigs() {
			err = errors.Join(err, tell("config "+config.GetId(), config))
		}
		return page.GetNextPageToken(), err
	})
}

// differences between what is wanted and what is there, one a line.
func (want inventory) differences(got inventory) []string {
	var lines []string
	for name, what := range want {
		if now, found := got[name]; !found {
			lines = append(lines, "missing: "+name+" "+what)
		} else if now != what {
			lines = append(lines, fmt.Sprintf("changed: %s: %s, not %s", name, now, what))
		}
	}
	for name, what := range got {
		if _, known := want[name]; !known {
			lines = append(lines, "left: "+name+" "+what)
		}
	}
	return lines
}
