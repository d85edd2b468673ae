package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// DefaultRetention is that of a namespace that setup makes.
const DefaultRetention = 30 * 24 * time.Hour

// setups are the parts that have something to make.
var setups = []struct {
	part string
	run  func(*setup, context.Context)
}{
	{"temporal", (*setup).temporal},
	{"nats", (*setup).nats},
	{"s3", (*setup).s3},
}

// SetupParts are the names of the parts that have something to make.
func SetupParts() []string {
	names := make([]string, len(setups))
	for n, s := range setups {
		names[n] = s.part
	}
	return names
}

// setupTimeout bounds the setup of one part. A new namespace takes some seconds until
// all of Temporal knows it.
const setupTimeout = time.Minute

// SetUp makes what is missing and leaves what is there, but for the retention of the
// namespace if it is not zero. It is safe to repeat. A part that fails does not keep the
// others from being made.
func SetUp(ctx context.Context, site Site, retention time.Duration) []Result {
	s := &setup{look: &look{Site: site}, retention: retention}
	defer s.close()
	for _, part := range setups {
		if !s.wants(part.part) {
			continue
		}
		within, cancel := context.WithTimeout(ctx, setupTimeout)
		s.part = part.part
		part.run(s, within)
		cancel()
	}
	return s.results
}

// setup is one call of SetUp.
type setup struct {
	*look
	retention time.Duration
	part      string
	results   []Result
}

func (s *setup) add(r Result) {
	r.Part = s.part
	s.results = append(s.results, r)
}

func (s *setup) made(check, found string) {
	s.add(Result{Check: check, State: StateMade, Found: found})
}
func (s *setup) there(check, found string) {
	s.add(Result{Check: check, State: StateThere, Found: found})
}

func (s *setup) temporal(ctx context.Context) {
	c, options, err := temporalclient.DialServer(ctx, s.Temporal)
	if err != nil {
		s.add(wrong("address", err.Error(), "start Temporal, or set TEMPORAL_ADDRESS or --address"))
		return
	}
	s.client = c
	if err := s.makeNamespace(ctx, options.Namespace); err != nil {
		s.add(wrong("namespace", temporalclient.Explain(options, err).Error(), "let this user make it, or make it by hand"))
		return
	}
	if err := s.addAttributes(ctx); err != nil {
		s.add(wrong("search attributes", err.Error(), "let this user add them, or add them by hand"))
	}
}

// makeNamespace makes the namespace, or changes its retention if that was asked for.
func (s *setup) makeNamespace(ctx context.Context, name string) error {
	service := s.client.WorkflowService()
	var err error
	s.namespace, err = temporalclient.DescribeNamespace(ctx, s.client, name)
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		if s.retention == 0 {
			s.retention = DefaultRetention
		}
		_, err := service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(s.retention),
		})
		if _, there := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); err != nil && !there {
			return err
		}
		if err := until(ctx, func() error {
			s.namespace, err = temporalclient.DescribeNamespace(ctx, s.client, name)
			return err
		}); err != nil {
			return err
		}
		s.made("namespace", fmt.Sprintf("%s, retention %s", name, job.Duration(s.namespace.Retention)))
		return nil
	}
	if err != nil {
		return err
	}
	if s.retention == 0 || s.retention == s.namespace.Retention {
		s.there("namespace", fmt.Sprintf("%s, retention %s", name, job.Duration(s.namespace.Retention)))
		return nil
	}
	if _, err := service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: name, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(s.retention)},
	}); err != nil {
		return err
	}
	s.there("namespace", name)
	s.made("retention", fmt.Sprintf("%s, before: %s", job.Duration(s.retention), job.Duration(s.namespace.Retention)))
	return nil
}

// addAttributes adds the search attributes and waits until queries may name them.
func (s *setup) addAttributes(ctx context.Context) error {
	if err := s.namespace.CheckTypes(); err != nil {
		return err
	}
	missing := s.namespace.MissingAttributes()
	if s.namespace.AttributesUnknown() {
		return errors.New("the server does not tell which there are")
	}
	if len(missing) == 0 {
		s.there("search attributes", "all")
		return nil
	}
	wanted := map[string]enumspb.IndexedValueType{}
	for _, name := range missing {
		wanted[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := s.client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: s.namespace.Name, SearchAttributes: wanted,
	})
	// Someone else may have added them meanwhile.
	if _, there := errors.AsType[*serviceerror.AlreadyExists](err); err != nil && !there {
		return fmt.Errorf("%s cannot be added: %w", strings.Join(missing, ", "), err)
	}
	for _, name := range missing {
		if err := until(ctx, func() error { return searchable(ctx, s.client, s.namespace.Name, name) }); err != nil {
			return fmt.Errorf("search attribute %s cannot be used: %w", name, err)
		}
	}
	s.made("search attributes", strings.Join(missing, ", "))
	return nil
}

func searchable(ctx context.Context, c sdk.Client, namespace, attribute string) error {
	_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace, Query: attribute + " = 'none'",
	})
	return err
}

// until tries again until there is no error. It gives the last one when ctx ends.
func until(ctx context.Context, try func() error) error {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (s *setup) nats(ctx context.Context) {
	c, err := s.connectNATS(ctx)
	if err != nil {
		s.add(wrong("address", err.Error(), "correct the setting"))
		return
	}
	defer c.Close()
	there, made, err := c.SetUp(ctx)
	if err != nil {
		s.add(wrong("streams", err.Error(), "run NATS "+pipeline.OldestServer+" or newer with JetStream, or set "+pipeline.EnvURL+" or --nats"))
		return
	}
	if len(there) > 0 {
		s.there("streams", streamNames(there))
	}
	if len(made) > 0 {
		s.made("streams", fmt.Sprintf("%s; replicas: %d", streamNames(made), c.Replicas()))
	}
	if server, err := c.Look(ctx); err == nil {
		if r := replicas(server, c.Replicas()); r.State == StateWrong {
			s.add(r)
		}
	}
}

func streamNames(states []pipeline.NeededStream) string {
	names := make([]string, len(states))
	for n, state := range states {
		names[n] = state.Name
	}
	return strings.Join(names, ", ")
}

func (s *setup) s3(ctx context.Context) {
	store, result := s.openStore()
	if store == nil {
		s.add(result)
		return
	}
	for _, bucket := range s.Buckets {
		made, err := store.MakeBucket(ctx, bucket)
		switch {
		case err != nil:
			s.add(wrong("bucket", err.Error(), "start the store, or let its keys make buckets"))
		case made:
			s.made("bucket", bucket)
		default:
			s.there("bucket", bucket)
		}
	}
	for _, bucket := range slices.Sorted(maps.Keys(s.Policies)) {
		made, err := store.SetPolicy(ctx, bucket, s.Policies[bucket])
		switch {
		case err != nil:
			s.add(wrong("policy", err.Error(), "correct the policy of "+bucket+", or let these keys set it"))
		case made:
			s.made("policy", bucket)
		default:
			s.there("policy", bucket)
		}
	}
}
