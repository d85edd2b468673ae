package contract

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// ServiceType is the type of the standalone activity that stands for a service:
// one live worker process. The process itself carries it out, from start to
// end, and its heartbeats show that the process lives. When they stop, Temporal
// closes the activity by itself, without help of any worker.
const ServiceType = "Service"

const servicePrefix = "service/"

// ServiceID is the id of the activity that stands for a service. Temporal runs
// no two activities of one id, so that no two live services have one name.
func ServiceID(worker job.WorkerType, name string) string {
	return servicePrefix + string(worker) + "/" + name
}

// ServiceTaskQueue is the task queue of one service: <type>@<name>. Runs of jobs
// that are bound to it are dispatched there.
func ServiceTaskQueue(worker job.WorkerType, name string) string {
	return string(worker) + "@" + name
}

// Service is what a worker process announces of itself: the input of the
// activity that stands for it.
type Service struct {
	Worker job.WorkerType `json:"worker"`
	// Name is unique among the live services of the worker type.
	Name string `json:"name"`
	// Tags are those of the process, host and name included.
	Tags map[string]string `json:"tags"`
	// Identity names the process in histories and the Web UI.
	Identity string    `json:"identity"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Build    Build     `json:"build"`
	// Deployment and BuildID say of a versioned worker which build it is.
	Deployment string `json:"deployment,omitempty"`
	BuildID    string `json:"build_id,omitempty"`
	// Slots is how many handlers may run at once.
	Slots int `json:"slots"`
	// Timeout is how long the process may be silent before the service counts as away.
	Timeout job.Duration `json:"timeout,omitzero"`
	// KeepsLogs says that the process keeps the logs of runs in NATS.
	KeepsLogs bool `json:"keeps_logs,omitempty"`
	// PayloadKeys are the ids of the keys with which the process reads payloads. It encrypts by
	// the first one; without any it does not.
	PayloadKeys []string `json:"payload_keys,omitempty"`
	// Types are the job types that the process serves.
	Types []ServedType `json:"job_types"`
}

// DeploymentVersion is the build of a versioned worker as Temporal names it in lists, "" of another.
func (s *Service) DeploymentVersion() string {
	if s.Deployment == "" {
		return ""
	}
	return s.Deployment + ":" + s.BuildID
}

// Build says what a worker process was built from.
type Build struct {
	// Module and Version are those of the main module; the version is "(devel)"
	// of a build from a work tree.
	Module  string `json:"module,omitempty"`
	Version string `json:"version,omitempty"`
	// Revision is the commit, if the build recorded it.
	Revision string `json:"revision,omitempty"`
}

// ServedType is a job type as a service announces it.
type ServedType struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Modes       []job.Mode `json:"modes,omitempty"`
	// SpecSchema is the JSON schema of the spec.
	SpecSchema json.RawMessage `json:"spec_schema,omitempty"`
}

// ServiceHeartbeat is the detail of a service's heartbeat.
type ServiceHeartbeat struct {
	// Running counts the handlers at work.
	Running int `json:"running"`
	// LastPoll is when the process last asked Temporal for work, or was answered.
	LastPoll time.Time `json:"last_poll,omitzero"`
	// Draining says that the process takes no more work.
	Draining bool `json:"draining,omitempty"`
	// StuckHandlers counts handlers among those at work that ignored the end of their
	// context and were given up. They keep their slots.
	StuckHandlers int `json:"stuck_handlers,omitempty"`
}

// Host is the machine of the service.
func (s *Service) Host() string { return s.Tags[job.TagHost] }

// ID names the service among those of all worker types: <type>@<name>.
func (s *Service) ID() string { return ServiceTaskQueue(s.Worker, s.Name) }

// Has reports whether the service has all the tags.
func (s *Service) Has(tags map[string]string) bool {
	for name, value := range tags {
		if s.Tags[name] != value {
			return false
		}
	}
	return true
}

// Serves reports whether the service has handlers for the job type.
func (s *Service) Serves(typeName string) bool {
	for _, t := range s.Types {
		if t.Name == typeName {
			return true
		}
	}
	return false
}

// JobType is the served type as plans and checks take it, without a handler.
func (t ServedType) JobType(worker job.WorkerType) job.Type {
	return job.Type{
		Name: t.Name, Worker: worker, Description: t.Description, Modes: t.Modes, SpecSchema: t.SpecSchema,
	}
}

// IsServiceID reports whether an id of an activity is that of a service.
func IsServiceID(id string) bool { return strings.HasPrefix(id, servicePrefix) }

// ChooseServiceInput asks for a service that a bound job's run can go to.
type ChooseServiceInput struct {
	JobID  string            `json:"job_id"`
	Worker job.WorkerType    `json:"worker"`
	Type   string            `json:"type"`
	Bind   map[string]string `json:"bind"`
	// Last is the service that the run was on, if there is one.
	Last string `json:"last,omitempty"`
	// Failover says what to do while Last is away, once it has been so for After.
	// The time counts from the first look.
	Failover job.Failover `json:"failover"`
	After    job.Duration `json:"after,omitempty"`
	// FreeSlot asks to wait until Last has a free slot: it lives, but did not take the
	// run.
	FreeSlot bool `json:"free_slot,omitempty"`
	// Spread asks for the service that has the least to do. Without it a job keeps to one
	// service from run to run, which spreads many jobs evenly, but not few.
	Spread bool `json:"spread,omitempty"`
}

// ServiceChoice is the answer of ChooseService.
type ServiceChoice struct {
	Service string `json:"service"`
}
