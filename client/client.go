// Package client lists, describes, starts and changes jobs, runs, queues and workers.
// All state is in Temporal; a [Client] keeps none.
//
// What carries the search attributes of this system belongs to it. What does not, even
// under the same name, is reported as [ErrNotOurs] and never changed.
//
// [Client.Jobs], [Client.Runs], [Client.Queues] and [Client.Workers] are for any program.
// A program that declares jobs, as a jobs file does, uses package schedules, which plans
// and applies them.
package client

import (
	"fmt"
	"os"
	"path/filepath"

	sdk "go.temporal.io/sdk/client"
)

// Client works in one namespace.
type Client struct {
	*conn
	Jobs    *JobClient
	Runs    *RunClient
	Queues  *QueueClient
	Workers *WorkerClient
	Apply   *ApplyClient
	// Deployments is about Worker Versioning.
	Deployments *DeploymentClient
}

// JobClient lists, describes and changes jobs.
type JobClient struct{ *conn }

// RunClient starts, lists, follows and ends runs.
type RunClient struct{ *conn }

// QueueClient puts items into queues, and manages queues and their items.
type QueueClient struct{ *conn }

// WorkerClient lists worker processes.
type WorkerClient struct{ *conn }

// ApplyClient makes the single changes that package schedules plans: programs use that
// package.
type ApplyClient struct{ *conn }

// conn is what the clients share.
type conn struct {
	temporal  sdk.Client
	namespace string
	identity  string        // of this process, in histories
	enqueuing chan struct{} // a slot for each enqueue under way
	limiter   *limiter      // of calls
}

func (c *conn) jobs() *JobClient     { return &JobClient{c} }
func (c *conn) runs() *RunClient     { return &RunClient{c} }
func (c *conn) queues() *QueueClient { return &QueueClient{c} }

// maxEnqueues bounds the enqueues under way: the server aborts updates of a workflow
// beyond the tenth.
const maxEnqueues = 8

// New makes a client of the namespace that the Temporal client is for.
func New(temporal sdk.Client, namespace string) *Client {
	c := &conn{
		temporal: temporal, namespace: namespace, identity: identity(),
		enqueuing: make(chan struct{}, maxEnqueues), limiter: newLimiter(),
	}
	return &Client{
		conn: c, Jobs: c.jobs(), Runs: c.runs(), Queues: c.queues(), Workers: &WorkerClient{c}, Apply: &ApplyClient{c},
		Deployments: &DeploymentClient{c},
	}
}

// Temporal is the underlying client.
func (c *Client) Temporal() sdk.Client { return c.temporal }

// Namespace is the namespace that the client works in.
func (c *Client) Namespace() string { return c.namespace }

// identity names this program and process as the SDK's calls do that are given
// no other name.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s/%d", filepath.Base(os.Args[0]), host, os.Getpid())
}
