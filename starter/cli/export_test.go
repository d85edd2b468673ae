package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// OnlyLocal are the paths of the commands that refuse --server, each with its subcommands.
func OnlyLocal() []string {
	var paths []string
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		if _, local := cmd.Annotations[onlyLocal]; local {
			paths = append(paths, cmd.Name())
			return
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look((&invocation{Program: Program{}.withDefaults()}).root())
	return paths
}

// Commands are the paths of all commands that work through --server, but for those that only
// have subcommands.
func Commands() []string {
	var paths []string
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		if _, local := cmd.Annotations[onlyLocal]; local || cmd.Name() == "completion" {
			return
		}
		if !cmd.DisableFlagsInUseLine { // As groups have it.
			paths = append(paths, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look((&invocation{Program: Program{}.withDefaults()}).root())
	return paths
}

// What tests of the rendering see of this package.

func (p Program) WritePlan(w io.Writer, plan *jobsv1.Plan) error {
	p.Stdout = w
	i := &invocation{Program: p.withDefaults()}
	return i.writePlan(w, plan)
}

func (p Program) WriteAlerts(w io.Writer, alerts []*jobsv1.Alert) error {
	p.Stdout = w
	i := &invocation{Program: p.withDefaults()}
	return i.writeAlerts(w, alerts, true)
}

func (p Program) WriteDrift(w io.Writer, drift *jobsv1.GetDriftResponse) error {
	p.Stdout = w
	i := &invocation{Program: p.withDefaults()}
	return i.writeLines(w, plantext.OfDrift(drift))
}

func (p Program) WriteJobs(w io.Writer, jobs []*jobsv1.Job) error {
	return (&invocation{Program: p.withDefaults()}).writeJobs(w, jobs)
}

// Screen is the standard output for tables and sheets.
func (p Program) Screen(wide bool) io.Writer {
	return (&invocation{Program: p.withDefaults(), wide: wide}).screen()
}

func (p Program) WriteRuns(w io.Writer, runs []*jobsv1.Run) error {
	return (&invocation{Program: p.withDefaults()}).runTable(runs, true).write(w)
}

func (p Program) WriteJob(w io.Writer, j *jobsv1.Job, runs []*jobsv1.Run) error {
	return (&invocation{Program: p.withDefaults()}).writeJob(w, j, runs, "")
}

func (p Program) WriteRun(w io.Writer, run *jobsv1.Run) error {
	return (&invocation{Program: p.withDefaults()}).writeRun(w, run)
}

func (p Program) WriteQueue(w io.Writer, queue *jobsv1.Queue, limit int) error {
	return (&invocation{Program: p.withDefaults()}).writeQueue(w, queue, limit)
}

func (p Program) WriteLoads(w io.Writer, loads []*jobsv1.Load) error {
	return (&invocation{Program: p.withDefaults()}).writeLoads(w, loads)
}

func (p Program) WriteOverview(w io.Writer, o *jobsv1.Overview) error {
	return (&invocation{Program: p.withDefaults()}).writeOverview(w, o, false)
}

func (p Program) WriteWorkers(w io.Writer, workers *jobsv1.ListWorkersResponse) error {
	return (&invocation{Program: p.withDefaults()}).writeWorkers(w, workers)
}

func (p Program) WriteLogLine(w io.Writer, line *jobsv1.LogLine) error {
	return (&invocation{Program: p.withDefaults(), format: formatTable}).writeLogLine(w, line)
}

func (p Program) When(t time.Time) string {
	return (&invocation{Program: p.withDefaults()}).when(t)
}

// ReadItems reads a file of specs of the first job type.
func (p Program) ReadItems(path string) ([]job.Job, error) {
	i := &invocation{Program: p.withDefaults()}
	definition, err := i.definition(adHoc{typeName: p.Types[0].Name}, job.Trigger{Queued: &job.Queued{Queue: "q"}})
	if err != nil {
		return nil, err
	}
	return i.readItems(path, definition)
}

func RunProgress(run *jobsv1.Run) string { return runProgress(run) }

// BulkOutcome is what became of one of many.
type BulkOutcome = bulkOutcome

// ReadPlan reads a saved plan.
func ReadPlan(r io.Reader, release string) (*jobsv1.JobSet, *jobsv1.Plan, error) {
	return readPlan(r, release)
}

// WriteNext writes the coming starts of a job, and notes to standard error.
func (p Program) WriteNext(stdout, stderr io.Writer, next *jobsv1.ListNextStartsResponse) error {
	p.Stdout, p.Stderr = stdout, stderr
	i := &invocation{Program: p.withDefaults()}
	return i.writeNext(i.screen(), "take_steps.a", next)
}
