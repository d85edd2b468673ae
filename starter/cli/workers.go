package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const workersHelp = `workers shows the services: the live worker processes, with the tags for the option
bind, their builds, the running handlers and the limit of handlers, and the time of
the last heartbeat. A service without heartbeats leaves the list after its service
timeout, 15 seconds by default, and is listed as lost for an hour. A draining service
takes no more work. Handlers that did not stop when asked to are shown in red.

Below the table are the job types that no live worker serves although scheduled,
running or waiting jobs need them, and the tags that jobs are bound to and no live
worker of their type has. Waiting items of queues count when they are next. What a
recurring job is bound to is known once it has run.`

func (i *invocation) workersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List live workers, and the job types that have none",
		Long:  workersHelp,
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			listed, err := i.api.Workers.ListWorkers(cmd.Context(), &jobsv1.ListWorkersRequest{})
			if err != nil {
				return err
			}
			live, _ := byLife(listed.GetWorkers())
			i.noteEmpty("live worker", len(live))
			return i.emit(listed, func(out io.Writer) error { return i.writeWorkers(out, listed) })
		},
	}
	cmd.AddCommand(i.workersDescribeCommand())
	return cmd
}

// byLife parts workers in those that live and those that are lost.
func byLife(workers []*jobsv1.Worker) (live, lost []*jobsv1.Worker) {
	for _, w := range workers {
		if w.GetStatus() == jobsv1.WorkerStatus_WORKER_STATUS_LOST {
			lost = append(lost, w)
		} else {
			live = append(live, w)
		}
	}
	return live, lost
}

// serviceID names a worker process: TYPE@NAME.
func serviceID(w *jobsv1.Worker) string { return w.GetType() + "@" + w.GetName() }

func (i *invocation) writeWorkers(out io.Writer, listed *jobsv1.ListWorkersResponse) error {
	t := newTable("SERVICE", "STATE", "HOST", "TAGS", "BUILD", "RUNNING", "LAST SEEN", "JOB TYPES").spare("BUILD", "JOB TYPES", "HOST", "LAST SEEN", "TAGS")
	live, lost := byLife(listed.GetWorkers())
	for _, s := range live {
		t.add(serviceID(s), wordOf(s.GetStatus()), s.GetTags()[job.TagHost], ownTags(s), buildText(s),
			fmt.Sprintf("%d/%d", s.GetRunning(), s.GetSlots()), i.when(toTime(s.GetLastSeenTime())), fmt.Sprint(len(s.GetJobTypes())))
	}
	if err := t.write(out); err != nil {
		return err
	}
	lines := &lineWriter{w: out}
	stuck := stuckHandlers(live)
	if len(stuck)+len(lost)+len(listed.GetUnservedTypes())+len(listed.GetUnservedTags()) > 0 {
		lines.printf("")
	}
	for _, text := range stuck {
		lines.printf("%s", i.paint(red, text))
	}
	for _, s := range lost {
		lines.printf("%s", i.paint(yellow, fmt.Sprintf("Lost: %s on %s, last seen %s",
			serviceID(s), clean(s.GetTags()[job.TagHost]), i.when(toTime(s.GetLastSeenTime())))))
	}
	for _, u := range listed.GetUnservedTypes() {
		lines.printf("%s", i.paint(red, fmt.Sprintf("No live worker serves %s (%s)", clean(u.GetJobType()), plural(int(u.GetJobs()), "job", "jobs"))))
	}
	for _, u := range listed.GetUnservedTags() {
		lines.printf("%s", i.paint(red, fmt.Sprintf("No live worker that serves %s has the tags %s (%s)",
			clean(u.GetJobType()), clean(job.TagsText(u.GetTags())), plural(int(u.GetJobs()), "job", "jobs"))))
	}
	return lines.err
}

// stuckHandlers names the live services with handlers that did not stop.
func stuckHandlers(services []*jobsv1.Worker) []string {
	var texts []string
	for _, s := range services {
		if s.GetStuckHandlers() > 0 {
			texts = append(texts, fmt.Sprintf("%s has %s that did not stop when asked to: restart it",
				serviceID(s), plural(int(s.GetStuckHandlers()), "handler", "handlers")))
		}
	}
	return texts
}

// ownTags are the tags of the process without those that every process has.
func ownTags(s *jobsv1.Worker) string {
	own := maps.Clone(s.GetTags())
	delete(own, job.TagHost)
	delete(own, job.TagName)
	return job.TagsText(own)
}

func buildText(s *jobsv1.Worker) string {
	const short = 12
	revision := s.GetRevision()
	return strings.TrimSpace(s.GetVersion() + " " + revision[:min(short, len(revision))])
}

func (i *invocation) workersDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe SERVICE",
		Short: "Show a live worker and its job types",
		Long: `describe shows a live worker process by its id, TYPE@NAME, or by its name alone.
With -o json it includes the schemas of the specs of its job types.`,
		Args:              arguments("SERVICE"),
		ValidArgsFunction: i.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			listed, err := i.api.Workers.ListWorkers(cmd.Context(), &jobsv1.ListWorkersRequest{WithTypes: true})
			if err != nil {
				return err
			}
			live, _ := byLife(listed.GetWorkers())
			s, err := findService(live, args[0])
			if err != nil {
				return err
			}
			return i.emit(s, func(w io.Writer) error { return i.writeService(w, s) })
		},
	}
}

// noService says that no live service has the name, which may be that of a worker type.
func noService(services []*jobsv1.Worker, name string) error {
	if n := slices.IndexFunc(services, func(s *jobsv1.Worker) bool { return s.GetType() == name }); n >= 0 {
		return fmt.Errorf("%s is a worker type; give one of its live services, such as %s", name, serviceID(services[n]))
	}
	if len(services) > 0 {
		return fmt.Errorf("there is no live service %s; starter workers lists those that live, such as %s", name, serviceID(services[0]))
	}
	return fmt.Errorf("there is no live service %s, and no other", name)
}

func findService(services []*jobsv1.Worker, name string) (*jobsv1.Worker, error) {
	var found []*jobsv1.Worker
	for _, s := range services {
		if serviceID(s) == name || s.GetName() == name {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return nil, noService(services, name)
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for n, s := range found {
		ids[n] = serviceID(s)
	}
	return nil, fmt.Errorf("%s is the name of several services: %s", name, strings.Join(ids, ", "))
}

func (i *invocation) writeService(w io.Writer, s *jobsv1.Worker) error {
	var sh sheet
	sh.add("Service", "%s", serviceID(s))
	sh.add("State", "%s", wordOf(s.GetStatus()))
	sh.add("Worker type", "%s", s.GetType())
	sh.add("Tags", "%s", job.TagsText(s.GetTags()))
	sh.add("Process", "%d, identity %s", s.GetPid(), s.GetIdentity())
	sh.add("Started", "%s", i.when(toTime(s.GetStartTime())))
	sh.add("Build", "%s", strings.TrimSpace(s.GetModule()+" "+buildText(s)))
	if s.GetDeployment() != "" {
		sh.add("Deployment", "%s, build %s", s.GetDeployment(), s.GetBuildId())
	}
	sh.add("Running", "%d of %d", s.GetRunning(), s.GetSlots())
	if s.GetStuckHandlers() > 0 {
		sh.add("Stuck", "%s that did not stop when asked to: restart the process", plural(int(s.GetStuckHandlers()), "handler", "handlers"))
	}
	if !s.GetKeepsLogs() {
		sh.add("Logs", "not kept: DENDRA_NATS_URL is not set there")
	}
	sh.add("Last seen", "%s", i.when(toTime(s.GetLastSeenTime())))
	sh.add("Last poll", "%s", i.when(toTime(s.GetLastPollTime())))
	if err := sh.write(w); err != nil {
		return err
	}
	t := newTable("JOB TYPE", "MODES", "DESCRIPTION")
	for _, served := range s.GetTypes() {
		t.add(served.GetName(), modeWord(strings.Join(served.GetModes(), ", ")), served.GetDescription())
	}
	return t.section(w, "Job types")
}
