package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) imagesCommand() *cobra.Command {
	cmd := group("images", "Look after the variants of photos and logos",
		i.imagesListCommand(), i.imagesGcCommand(), i.imagesRemakeCommand())
	cmd.Long = `images runs a job of type ReconcileImages once, on a backend worker. The worker knows
the bucket of variants, and those of uploads, from its DENDRA_PLACES.

At a server that knows its callers it needs the role admin.`
	return cmd
}

// imagesReport is the output of a run of ReconcileImages.
type imagesReport struct {
	Stages []struct {
		Name   string `json:"name"`
		Things []struct {
			Kind    string   `json:"kind"`
			Count   int64    `json:"count"`
			Bytes   int64    `json:"bytes"`
			Samples []string `json:"samples"`
		} `json:"things"`
		Kept     []string `json:"kept"`
		KeptMore int      `json:"kept_more"`
	} `json:"stages"`
	Counts map[string]int64 `json:"counts"`
}

// imageKinds are the kinds of things in a report, in the words of people.
var imageKinds = map[string]string{
	"unnamed": "variants no manifest names", "gone": "objects of gone uploads", "replaced": "objects of replaced recipes",
	"recent": "objects in their grace time", "stale": "uploads of another recipe", "incomplete": "uploads lacking variants",
}

// imagesPlace are the flags of what is looked at.
type imagesPlace struct {
	prefixes []string
	ladder   string
}

func (p *imagesPlace) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&p.prefixes, "prefix", nil, "first parts of the keys of variants, with commas between them (default photos,logos)")
	ladders := []string{"default", "release2", "responsive"}
	cmd.Flags().Var(choose(&p.ladder, ladders...), "ladder", "the present recipe of photos: default, release2 or responsive (default: default)")
	completeFixed(cmd, "ladder", ladders...)
}

// spec is that of ReconcileImages, with what more it shall do.
func (p *imagesPlace) spec(more map[string]any) map[string]any {
	if len(p.prefixes) > 0 {
		more["prefixes"] = anys(p.prefixes)
	}
	if p.ladder != "" {
		more["ladder"] = p.ladder
	}
	return more
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

func (i *invocation) imagesListCommand() *cobra.Command {
	var place imagesPlace
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show what gc would remove, and what remake would make again",
		Long: `list looks at all variants and manifests, and changes nothing. Of each kind it shows
how many there are, and one of them. With -o json there are five.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			run, report, err := i.reconcileImages(cmd.Context(), place.spec(map[string]any{}))
			if err != nil {
				return err
			}
			return i.emit(run, func(w io.Writer) error { return i.writeImages(w, report) })
		},
	}
	place.register(cmd)
	return cmd
}

func (i *invocation) imagesGcCommand() *cobra.Command {
	var place imagesPlace
	var gone, replaced, yes bool
	grace := job.Duration(0)
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove variants that no manifest names",
		Long: `gc shows what would be removed and asks. With --yes it does not ask. It removes what
no manifest names, and with the flags what else is not needed. An object that is not
as the program stores it stays, and so does all of a folder that has something
younger than the grace time.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec := map[string]any{"remove_unnamed": true, "remove_gone": gone, "remove_replaced": replaced}
			plan := map[string]any{}
			if cmd.Flags().Changed("grace") {
				spec["grace"], plan["grace"] = grace.String(), grace.String()
			}
			wanted := map[string]bool{"unnamed": true, "gone": gone, "replaced": replaced}
			return i.changeImages(cmd.Context(), "gc", place.spec(plan), place.spec(spec), yes, func(kind string) bool { return wanted[kind] })
		},
	}
	place.register(cmd)
	cmd.Flags().BoolVar(&gone, "gone", false, "also what was made of uploads that are gone")
	cmd.Flags().BoolVar(&replaced, "replaced", false, "also what other recipes made, where the present one has made variants; pages may still name it")
	cmd.Flags().Var(durationOf(&grace), "grace", "how old it has to be, at least PT10M (default P1D)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (i *invocation) imagesRemakeCommand() *cobra.Command {
	var place imagesPlace
	var yes bool
	cmd := &cobra.Command{
		Use:   "remake",
		Short: "Make variants again where the recipe has changed, or where some are lost",
		Long: `remake shows which uploads have no variants of the present recipe, or lost some, and
asks. With --yes it does not ask. Each becomes a job in the queue of its organization.
What other recipes made stays, until gc --replaced.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return i.changeImages(cmd.Context(), "remake", place.spec(map[string]any{}), place.spec(map[string]any{"remake": true}), yes,
				func(kind string) bool { return kind == "stale" || kind == "incomplete" })
		},
	}
	place.register(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// changeImages shows what the plan finds, asks, and has it done.
func (i *invocation) changeImages(ctx context.Context, command string, plan, spec map[string]any, yes bool, concerns func(kind string) bool) error {
	if !yes {
		run, report, err := i.reconcileImages(ctx, plan)
		if err != nil {
			return err
		}
		found := int64(0)
		for _, s := range report.Stages {
			for _, t := range s.Things {
				if concerns(t.Kind) {
					found += t.Count
				}
			}
		}
		if found == 0 {
			return i.emit(run, func(w io.Writer) error { return i.writeImages(w, report) })
		}
		shown := i.screen()
		shown.Writer = i.errs()
		if err := i.writeImages(shown, report); err != nil {
			return err
		}
		what, question := plural(int(found), "object", "objects"), "Remove %s?"
		if command == "remake" {
			what, question = plural(int(found), "upload", "uploads"), "Make the variants of %s again?"
		}
		if err := i.ask(ctx, fmt.Sprintf(question, what), "images "+command, "to do so", "nothing was changed"); err != nil {
			return err
		}
	}
	run, report, err := i.reconcileImages(ctx, spec)
	if err != nil {
		return err
	}
	return i.emit(run, func(w io.Writer) error { return i.writeImages(w, report) })
}

// reconcileImages runs the job, and gives its report.
func (i *invocation) reconcileImages(ctx context.Context, spec map[string]any) (*jobsv1.Run, *imagesReport, error) {
	run, err := i.runOnce(ctx, "ReconcileImages", spec)
	if err != nil {
		return nil, nil, err
	}
	report := &imagesReport{}
	return run, report, decodeValue(run.GetOutput(), report)
}

// writeImages shows what was found and done.
func (i *invocation) writeImages(w io.Writer, report *imagesReport) error {
	t := newTable("PREFIX", "FOUND", "COUNT", "SIZE", "OBJECT").spare("SIZE", "PREFIX")
	for _, s := range report.Stages {
		for _, things := range s.Things {
			name, size := "", ""
			if len(things.Samples) > 0 {
				name = things.Samples[0]
			}
			if things.Bytes > 0 {
				size = byteSize(things.Bytes)
			}
			t.add(s.Name, imageKinds[things.Kind], fmt.Sprint(things.Count), size, name)
		}
	}
	if len(t.rows) > 0 {
		if err := t.write(w); err != nil {
			return err
		}
	}
	lines := &lineWriter{w: w}
	for _, s := range report.Stages {
		for _, text := range s.Kept {
			lines.printf("%s %s", i.paint(faint, "="), clean(text))
		}
		if s.KeptMore > 0 {
			lines.printf("%s and %d more are left", i.paint(faint, "="), s.KeptMore)
		}
	}
	lines.printf("%s; removed %s (%s), queued %s.", plural(int(report.Counts["objects"]), "object", "objects"),
		plural(int(report.Counts["removed"]), "object", "objects"), byteSize(report.Counts["removed_bytes"]), plural(int(report.Counts["queued"]), "job", "jobs"))
	return lines.err
}
