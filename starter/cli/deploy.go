package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// defaultDeployment is the name of the Worker Deployment of all worker types, as docs and the
// examples of deployments have it.
const defaultDeployment = "dendra-jobs"

func (i *invocation) deployCommand() *cobra.Command {
	d := &deploying{invocation: i}
	cmd := group("deploy", "Upgrade versioned workers, build by build", d.statusCommand(), d.rampCommand(), d.promoteCommand(),
		d.verbCommand(verbs.RollbackDeployment, verbHelp{"Go back to the build before", `rollback ends a ramp. If there is none, the build that was the current one before takes
all new runs again. Loops and queues go back with it.`}),
		d.verbCommand(verbs.MoveRuns, verbHelp{"Move what one build holds to another", `move has the runs, loops and queues that build FROM holds go on with build TO, in the
middle of their histories. It is for a build whose workers are gone, or whose code
fails. starter replay says before whether the code fits. A run that fails there goes on
when it is moved back.`}, "FROM", "TO"),
		d.verbCommand(verbs.PruneBuilds, verbHelp{"Remove builds that hold nothing", `prune removes the builds that hold nothing and have no workers from Temporal, which
keeps at most 100 of a deployment. Temporal remembers a worker for five minutes.`}))
	cmd.Long = `deploy shows and changes which builds of the workers take runs: Temporal's Worker
Versioning. A worker is versioned if TEMPORAL_DEPLOYMENT_NAME is set.

A run ends on the build that began it. Loops, queues and the records of applied jobs go
on with the build that is promoted. So both builds serve side by side for a while:
status says when the old one may be stopped.`
	cmd.PersistentFlags().StringVar(&d.name, "deployment", defaultDeployment, "name of the Worker Deployment")
	return cmd
}

// deploying is an invocation of deploy.
type deploying struct {
	*invocation
	name string
}

// verbCommand makes the command of a verb; arguments name builds.
func (d *deploying) verbCommand(v *verbs.Verb, help verbHelp, arguments ...string) *cobra.Command {
	return d.withRequest(v, help, func() proto.Message { return nil }, arguments...)
}

// withRequest is verbCommand for a verb with more in its request.
func (d *deploying) withRequest(v *verbs.Verb, help verbHelp, request func() proto.Message, arguments ...string) *cobra.Command {
	cmd := d.invocation.verbCommand(v, help, func(ctx context.Context, a verbs.Args, _ bool) error {
		a.Names, a.With = slices.Concat([]string{d.name}, a.Names), request()
		done, err := d.do(ctx, v, a)
		if err != nil {
			return err
		}
		return d.tell(done)
	}, arguments...)
	cmd.ValidArgsFunction = d.completeBuilds
	return cmd
}

func (d *deploying) rampCommand() *cobra.Command {
	var percentage float32
	cmd := d.withRequest(verbs.RampBuild, verbHelp{"Give a part of the new runs to a build", `ramp gives BUILD a part of the new runs, and of the loops and queues. The current build
keeps the rest. --percentage 0 ends the ramp.`}, func() proto.Message {
		return &jobsv1.RampBuildRequest{Percentage: percentage}
	}, "BUILD")
	cmd.Flags().Float32Var(&percentage, "percentage", 10, "the part of the new runs, from 0 to 100")
	return cmd
}

func (d *deploying) promoteCommand() *cobra.Command {
	var ignore bool
	cmd := d.withRequest(verbs.PromoteBuild, verbHelp{"Make a build the current one", `promote has BUILD take all new runs. Loops, queues and the records of applied jobs go
on with it: an iteration that is under way is asked to stop, and goes on from its
cursor. Temporal refuses a build that lacks workers of a type that the current one has.`}, func() proto.Message {
		return &jobsv1.PromoteBuildRequest{IgnoreMissingWorkers: ignore}
	}, "BUILD")
	cmd.Flags().BoolVar(&ignore, "ignore-missing-workers", false, "also if the build lacks workers of a type that the current one has")
	return cmd
}

func (d *deploying) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the builds, and what each holds",
		Long: `status shows the builds of the deployment, the latest first: which takes new runs, its
live workers, the runs, and the loops, queues and records that it holds, and whether its
workers may be stopped.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown, err := d.api.Deployments.GetDeployment(cmd.Context(), &jobsv1.GetDeploymentRequest{Deployment: d.name})
			if err != nil {
				return err
			}
			return d.emit(shown, func(w io.Writer) error { return d.write(w, shown.GetDeployment()) })
		},
	}
}

func (d *deploying) write(w io.Writer, shown *jobsv1.Deployment) error {
	t := newTable("BUILD", "STATUS", "WORKERS", "RUNS", "LONG-RUNNING", "FIRST SEEN", "MAY STOP").spare("FIRST SEEN")
	for _, b := range shown.GetBuilds() {
		status := wordOf(b.GetStatus())
		if b.GetStatus() == jobsv1.BuildStatus_BUILD_STATUS_RAMPING {
			status = fmt.Sprintf("%s, %g %%", status, b.GetPercentage())
		}
		t.add(b.GetId(), status, fmt.Sprint(b.GetWorkers()), fmt.Sprint(b.GetRuns()), fmt.Sprint(b.GetLongRunning()), d.when(toTime(b.GetCreateTime())), mayStop(b))
	}
	if err := t.write(w); err != nil {
		return err
	}
	lines := &lineWriter{w: w}
	for _, text := range shown.GetFindings() {
		lines.printf("%s", d.paint(red, clean(strings.ToUpper(text[:1])+text[1:])))
	}
	return lines.err
}

func mayStop(b *jobsv1.Build) string {
	if b.GetHeld() == "" {
		return "yes"
	}
	return "no: " + b.GetHeld()
}

// completeBuilds completes the ids of builds.
func (d *deploying) completeBuilds(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.suggest(cmd, args, func(ctx context.Context, found map[string]bool) error {
		shown, err := d.api.Deployments.GetDeployment(ctx, &jobsv1.GetDeploymentRequest{Deployment: d.name})
		for _, b := range shown.GetDeployment().GetBuilds() {
			found[b.GetId()] = true
		}
		return err
	})
}
