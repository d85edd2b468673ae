package temporalclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Namespace is what a server says of a namespace.
type Namespace struct {
	Name string
	// Retention is how long ended runs are known.
	Retention time.Duration
	// StandaloneActivities says that services can be announced and listed.
	StandaloneActivities bool

	// keywords are its search attributes of type Keyword.
	keywords map[string]bool
	// others are its other search attributes, with their types.
	others map[string]string
	// unknown says that the server does not tell its search attributes.
	unknown bool
}

// DescribeNamespace asks for a namespace.
func DescribeNamespace(ctx context.Context, c client.Client, name string) (Namespace, error) {
	answer, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		return Namespace{}, err
	}
	n := Namespace{
		Name:                 name,
		Retention:            answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(),
		StandaloneActivities: answer.GetNamespaceInfo().GetCapabilities().GetStandaloneActivities(),
		keywords:             map[string]bool{}, others: map[string]string{},
	}
	// SQL databases name columns, such as Keyword01, by aliases.
	for column, alias := range answer.GetConfig().GetCustomSearchAttributeAliases() {
		n.add(alias, strings.TrimRight(column, "0123456789"))
	}
	if len(n.MissingAttributes()) == 0 {
		return n, nil
	}
	// Elasticsearch has no aliases. An operator may be asked by those alone who may change.
	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: name})
	switch _, away := errors.AsType[*serviceerror.Unimplemented](err); {
	case err == nil:
	case away, denied(err): // Temporal Cloud has no such call.
		n.unknown = len(n.keywords)+len(n.others) == 0
	default:
		return Namespace{}, err
	}
	for name, kind := range listed.GetCustomAttributes() {
		n.add(name, kind.String())
	}
	return n, nil
}

func denied(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	return denied
}

func (n *Namespace) add(name, kind string) {
	if kind == enumspb.INDEXED_VALUE_TYPE_KEYWORD.String() {
		n.keywords[name] = true
		delete(n.others, name)
		return
	}
	n.others[name] = kind
}

// MissingAttributes are the search attributes of this system that the namespace has not,
// in the order of their names.
func (n *Namespace) MissingAttributes() []string {
	var missing []string
	for _, key := range contract.AttributeKeys() {
		if name := key.GetName(); !n.unknown && !n.keywords[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// AttributesUnknown reports whether the server does not tell which search attributes it has.
func (n *Namespace) AttributesUnknown() bool { return n.unknown }

// CheckTypes reports search attributes that have a name of this system and another type.
func (n *Namespace) CheckTypes() error {
	for _, name := range slices.Sorted(maps.Keys(n.others)) {
		if slices.ContainsFunc(n.MissingAttributes(), func(missing string) bool { return missing == name }) {
			return fmt.Errorf("search attribute %s of namespace %q has the type %s and has to be a Keyword: use another namespace", name, n.Name, n.others[name])
		}
	}
	return nil
}

// check reports a namespace that jobs cannot be in.
func (n *Namespace) check(address string) error {
	if err := n.CheckTypes(); err != nil {
		return fmt.Errorf("temporal at %s: %w", address, err)
	}
	if missing := n.MissingAttributes(); len(missing) > 0 {
		return fmt.Errorf("namespace %q of temporal at %s lacks the search attributes %s: run starter setup",
			n.Name, address, strings.Join(missing, ", "))
	}
	return nil
}

// ServicesSince is the first release of Temporal that has services.
const ServicesSince = "1.32"

// Version asks for the release of the server.
func Version(ctx context.Context, c client.Client) (string, error) {
	answer, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	return answer.GetServerVersion(), err
}
