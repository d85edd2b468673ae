package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/servers"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// importSpec are the keys of the spec of ImportFile that have flags.
type importSpec struct {
	Bucket       string `json:"bucket,omitempty"`
	Key          string `json:"key,omitempty"`
	ETag         string `json:"etag,omitempty"`
	Organization string `json:"organization,omitempty"`
	Station      string `json:"station,omitempty"`
	Table        string `json:"table,omitempty"`
	TimeZone     string `json:"time_zone,omitempty"`
	DryRun       bool   `json:"dry_run,omitempty"`
}

func (i *invocation) importCommand() *cobra.Command {
	ad := adHoc{typeName: "ImportFile", maxRetry: job.DefaultOptions(job.ModeOneShot).MaxRetryCount}
	var spec importSpec
	var more string
	var detach bool
	var flags verbFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Upload a data logger's file and import it",
		Long: `import puts a file into the bucket of uploads, starts a run of ImportFile, and waits
for its end. With --dry-run the run tells what is in the file, and publishes nothing;
-o json shows all of it. The same file twice is imported once: it is not uploaded again
if it is there. An upload that was broken off goes on when import is called again.

The server signs URLs, to which the parts of the file go. At a server that knows its
callers, import needs the role admin: it brings a definition.

Exit codes: as of run.`,
		Example: `  starter import TenMin.dat --organization demo --station angelo --time-zone -08:00 --dry-run
  starter import rain.csv --organization demo --station angelo --time-zone UTC --table rain --spec '{"csv": {"time": ["t"]}}'`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case spec.Organization == "":
				return misuse(cmd, "--organization is missing")
			case spec.Station == "":
				return misuse(cmd, "--station is missing")
			}
			if info, err := os.Stat(args[0]); err != nil {
				return fmt.Errorf("the file cannot be read: %w", err)
			} else if info.Size() == 0 {
				return fmt.Errorf("%s is empty", args[0])
			}
			spec.Key = args[0] // Until it is known.
			text, err := i.readSpec(more)
			if err != nil {
				return err
			}
			if _, err := i.defineFrom(ad, spec, text); err != nil { // Before what may take long.
				return err
			}
			upload, err := i.upload(cmd.Context(), spec.Organization, args[0])
			if err != nil {
				return err
			}
			spec.Bucket, spec.Key, spec.ETag = upload.GetBucket(), upload.GetKey(), upload.GetEtag()
			definition, err := i.defineFrom(ad, spec, text)
			if err != nil {
				return err
			}
			_, err = i.runDefined(cmd.Context(), &jobsv1.RunJobRequest{Job: definition, Reason: flags.reason}, detach)
			return err
		},
	}
	set := cmd.Flags()
	set.Var(textValue{&spec.Organization, "SLUG"}, "organization", "organization that owns the data")
	set.Var(textValue{&spec.Station, "SLUG"}, "station", "station of the data")
	set.Var(textValue{&spec.TimeZone, "ZONE"}, "time-zone", "zone of the file's clock: -08:00, Europe/Zurich")
	set.Var(textValue{&spec.Table, "NAME"}, "table", "table (default: the one that the file names)")
	set.StringVar(&more, "spec", "", "other keys of the spec as a JSON object, @FILE, or - for standard input")
	set.BoolVar(&spec.DryRun, "dry-run", false, "tell what is in the file, and publish nothing")
	set.Var(durationOf(&ad.runTimeout), "run-timeout", "time limit of one attempt (default: PT1H)")
	set.BoolVar(&detach, "detach", false, "print what was started, and do not wait")
	flags.register(cmd, verbs.RunJob)
	return cmd
}

// upload sends a file to the store, unless it is there.
func (i *invocation) upload(ctx context.Context, organization, file string) (*jobsv1.Upload, error) {
	began, line := time.Now(), i.newProgress()
	line.show("uploading "+file, 0)
	defer line.clear()
	uploader := servers.Uploader{Client: i.api.Uploads, Progress: func(done, total int) {
		line.show(fmt.Sprintf("uploading %s: %d of %d parts", file, done, total), time.Since(began))
	}}
	return uploader.Upload(ctx, organization, file)
}

// runDefined starts a run of a definition, and waits for its end unless it is to be detached.
func (i *invocation) runDefined(ctx context.Context, request *jobsv1.RunJobRequest, detach bool) (*started, error) {
	started, err := i.trigger(ctx, request)
	if err != nil {
		return nil, err
	}
	if detach {
		return started, i.reportStarted(started)
	}
	return started, i.await(ctx, started)
}

// defineFrom makes the definition of a one-shot. A key of spec, which flags filled in, wins
// over the same key of more, a JSON object.
func (i *invocation) defineFrom(ad adHoc, spec any, more []byte) (*jobsv1.Job, error) {
	keys := map[string]any{}
	for _, part := range [][]byte{more, job.EncodeJSON(spec)} {
		if err := json.Unmarshal(part, &keys); err != nil {
			return nil, fmt.Errorf("the spec is no JSON object: %w", err)
		}
	}
	ad.spec = string(job.EncodeJSON(keys))
	defined, err := i.defined(ad, job.Trigger{OneShot: &job.OneShot{}})
	if err != nil {
		return nil, err
	}
	return api.JobMessage(defined), nil
}
