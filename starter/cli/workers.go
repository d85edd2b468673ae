package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

const workersHelp = `workers shows the services: the live worker processes, with the tags for the option
bind, their builds, the running handlers and the limit of handlers, and the time of
the last heartbeat. A service without heartbeats leaves the list after its service
timeout, 15 seconds by default, and is listed as lost for an hour. A draining service
takes no more work. Handlers that did not stop when asked to are shown in red.

Below the table are the job types that no live worker serves although scheduled,
running or waiting jobs need them. Waiting items of queues count when they are next.`

func (i *invocation) workersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List live workers, and the job types that have none",
		Long:  workersHelp,
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			w, err := c.Workers.List(cmd.Context())
			if err != nil {
				return err
			}
			report := client.Workers{Services: list(w.Services), Lost: list(w.Lost), Unserved: list(w.Unserved)}
			i.noteEmpty("live worker", len(w.Services))
			return i.emit(report, func(out io.Writer) error { return i.writeWorkers(out, w) })
		},
	}
	cmd.AddCommand(i.workersDescribeCommand())
	return cmd
}

func (i *invocation) writeWorkers(out io.Writer, w *client.Workers) error {
	t := newTable("SERVICE", "STATE", "HOST", "TAGS", "BUILD", "RUNNING", "LAST SEEN", "JOB TYPES")
	for n := range w.Services {
		s := &w.Services[n]
		t.add(s.ID(), string(s.State), s.Host(), ownTags(s), buildText(s.Build),
			fmt.Sprintf("%d/%d", s.Running, s.Slots), i.when(s.LastSeen), fmt.Sprint(len(s.Types)))
	}
	if err := t.write(out); err != nil {
		return err
	}
	lines := &lineWriter{w: out}
	stuck := stuckHandlers(w.Services)
	if len(stuck)+len(w.Lost)+len(w.Unserved) > 0 {
		lines.printf("")
	}
	for _, text := range stuck {
		lines.printf("%s", i.paint(red, text))
	}
	for n := range w.Lost {
		s := &w.Lost[n]
		lines.printf("%s", i.paint(yellow, fmt.Sprintf("Lost: %s on %s, last seen %s", s.ID(), clean(s.Host()), i.when(s.LastSeen))))
	}
	for _, u := range w.Unserved {
		lines.printf("%s", i.paint(red, fmt.Sprintf("No live worker serves %s (%s)", clean(u.Type), plural(u.Jobs, "job", "jobs"))))
	}
	return lines.err
}

// stuckHandlers names the live services with handlers that did not stop.
func stuckHandlers(services []client.LiveService) []string {
	var texts []string
	for n := range services {
		s := &services[n]
		if s.StuckHandlers > 0 {
			texts = append(texts, fmt.Sprintf("%s has %s that did not stop when asked to: restart it",
				s.ID(), plural(s.StuckHandlers, "handler", "handlers")))
		}
	}
	return texts
}

// ownTags are the tags of the process without those that every process has.
func ownTags(s *client.LiveService) string {
	own := maps.Clone(s.Tags)
	delete(own, job.TagHost)
	delete(own, job.TagName)
	return tags(own)
}

func buildText(b contract.Build) string {
	const short = 12
	if len(b.Revision) > short {
		return b.Version + " " + b.Revision[:short]
	}
	return strings.TrimSpace(b.Version + " " + b.Revision)
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
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			services, failed := c.Workers.Services(cmd.Context(), time.Time{})
			s, err := findService(services.Live, args[0], c.Namespace())
			if failed = errors.Join(failed, services.Unreadable); s == nil && failed != nil {
				return failed
			}
			if err != nil {
				return err
			}
			return i.emit(s, func(w io.Writer) error { return i.writeService(w, s) })
		},
	}
}

func findService(services []client.LiveService, name, namespace string) (*client.LiveService, error) {
	var found []*client.LiveService
	for n := range services {
		if s := &services[n]; s.ID() == name || s.Name == name {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no live service %s in namespace %s", name, namespace)
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for n, s := range found {
		ids[n] = s.ID()
	}
	return nil, fmt.Errorf("%s is the name of several services: %s", name, strings.Join(ids, ", "))
}

func (i *invocation) writeService(w io.Writer, s *client.LiveService) error {
	var sh sheet
	sh.add("Service", "%s", s.ID())
	sh.add("State", "%s", s.State)
	sh.add("Worker type", "%s", s.Worker)
	sh.add("Tags", "%s", tags(s.Tags))
	sh.add("Process", "%d, identity %s", s.PID, s.Identity)
	sh.add("Started", "%s", i.when(s.Started))
	sh.add("Build", "%s", strings.TrimSpace(s.Build.Module+" "+buildText(s.Build)))
	sh.add("Running", "%d of %d", s.Running, s.Slots)
	if s.StuckHandlers > 0 {
		sh.add("Stuck", "%s that did not stop when asked to: restart the process", plural(s.StuckHandlers, "handler", "handlers"))
	}
	sh.add("Last seen", "%s", i.when(s.LastSeen))
	sh.add("Last poll", "%s", i.when(s.LastPoll))
	if err := sh.write(w); err != nil {
		return err
	}
	t := newTable("JOB TYPE", "MODES", "DESCRIPTION")
	for _, served := range s.Types {
		modes := make([]string, len(served.Modes))
		for n, mode := range served.Modes {
			modes[n] = string(mode)
		}
		if len(modes) == 0 {
			modes = []string{"all"}
		}
		t.add(served.Name, strings.Join(modes, ", "), served.Description)
	}
	slices.SortFunc(t.rows, slices.Compare)
	return t.section(w, "Job types")
}
