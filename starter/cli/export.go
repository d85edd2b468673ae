package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/servers"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// exportSpec are the keys of the spec of ExportDatastreams that have flags.
type exportSpec struct {
	Organization string   `json:"organization,omitempty"`
	Stations     []string `json:"stations,omitempty"`
	Location     string   `json:"location,omitempty"`
	Tables       []string `json:"tables,omitempty"`
	Fields       []string `json:"fields,omitempty"`
	Start        string   `json:"start,omitempty"`
	End          string   `json:"end,omitempty"`
	Format       string   `json:"format,omitempty"`
	DryRun       bool     `json:"dry_run,omitempty"`
}

func (i *invocation) exportCommand() *cobra.Command {
	ad := adHoc{typeName: "ExportDatastreams", maxRetry: job.DefaultOptions(job.ModeOneShot).MaxRetryCount}
	var spec exportSpec
	var more, folder string
	var detach bool
	var flags verbFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export points of stations into files, and download them",
		Long: `export starts a run of ExportDatastreams, and waits for its end. The run writes files
into the bucket of exports. With --download they come into a folder; without it, a link
is printed, which reads a list of links for as long as the files last. With --dry-run
the run counts values and gaps, and writes nothing; -o json shows all of it.

At a server that knows its callers, export needs the role admin: it brings a definition.

Exit codes: as of run.`,
		Example: `  starter export --organization demo --station angelo --location common1 --start 2026-03-01T00:00:00Z --end 2026-04-01T00:00:00Z --dry-run
  starter export --organization demo --station angelo --location common1 --start 2025-01-01T00:00:00Z --end 2026-01-01T00:00:00Z --format parquet --download data`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := i.readSpec(more)
			if err != nil {
				return err
			}
			definition, err := i.defineFrom(ad, spec, text)
			if err != nil {
				return err
			}
			started, err := i.runDefined(cmd.Context(), &jobsv1.RunJobRequest{Job: definition, Reason: flags.reason}, detach)
			if err != nil || detach || spec.DryRun {
				return err
			}
			return i.download(cmd.Context(), started, folder)
		},
	}
	set := cmd.Flags()
	set.Var(textValue{&spec.Organization, "SLUG"}, "organization", "organization that owns the stations")
	set.StringArrayVar(&spec.Stations, "station", nil, "station; several")
	set.Var(textValue{&spec.Location, "NAME"}, "location", "location that has the points")
	set.StringArrayVar(&spec.Tables, "table", nil, "table of the stations; several (default: all)")
	set.StringArrayVar(&spec.Fields, "field", nil, "field of the tables; several (default: all)")
	set.Var(textValue{&spec.Start, "TIME"}, "start", "from when on: 2026-03-01T00:00:00Z")
	set.Var(textValue{&spec.End, "TIME"}, "end", "until when, itself left out")
	set.Var(textValue{&spec.Format, "FORMAT"}, "format", "csv, parquet or netcdf (default: csv)")
	set.StringVar(&more, "spec", "", "other keys of the spec as a JSON object, @FILE, or - for standard input")
	set.BoolVar(&spec.DryRun, "dry-run", false, "count values and gaps, and write nothing")
	set.Var(textValue{&folder, "FOLDER"}, "download", "folder for the files, which is made")
	set.Var(durationOf(&ad.runTimeout), "run-timeout", "time limit of one attempt (default: PT1H)")
	set.BoolVar(&detach, "detach", false, "print what was started, and do not wait")
	flags.register(cmd, verbs.RunJob)
	return cmd
}

// download reads the files of an export into a folder, or prints the link to them.
func (i *invocation) download(ctx context.Context, s *started, folder string) error {
	response, err := i.api.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: s.GetRunName()})
	if err != nil {
		return err
	}
	var output struct {
		Link     string `json:"link"`
		LinkEnds string `json:"link_ends"`
	}
	if err := decodeValue(response.GetRun().GetOutput(), &output); err != nil {
		return fmt.Errorf("the result of the run cannot be read: %w", err)
	}
	if folder == "" {
		i.note("Until %s: curl -s '%s' | xargs -n 1 curl -sO", clean(output.LinkEnds), clean(output.Link))
		return nil
	}
	n, err := servers.Download(ctx, output.Link, folder)
	if err == nil {
		i.note("%d files are in %s.", n, folder)
	}
	return err
}
