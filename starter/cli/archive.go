package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func (i *invocation) archiveCommand() *cobra.Command {
	cmd := group("archive", "Audit, list and read the archive of raw messages",
		i.archiveAuditCommand(), i.archiveListCommand(), i.archiveCatCommand())
	cmd.Long = `archive reads the S3 archive that post_to_archive jobs write. Its settings are those
of the workers: DENDRA_S3_ENDPOINT, DENDRA_S3_ACCESS_KEY, DENDRA_S3_SECRET_KEY,
DENDRA_S3_REGION. audit also reads the NATS server of DENDRA_NATS_URL, or --nats.
Temporal is not needed.`
	return cmd
}

// archivePlace are the flags for the location of an archive.
type archivePlace struct{ bucket, prefix string }

func (p *archivePlace) register(flags *pflag.FlagSet) {
	flags.StringVar(&p.bucket, "bucket", archive.DefaultBucket, "bucket of the archive")
	flags.StringVar(&p.prefix, "prefix", "", "text before all keys, as in the job's spec")
}

func (i *invocation) openArchive(cmd *cobra.Command, p archivePlace) (archive.Archive, error) {
	if p.prefix != "" && !strings.HasSuffix(p.prefix, "/") {
		return archive.Archive{}, misuse(cmd, "--prefix %s does not end with a slash", p.prefix)
	}
	config, err := objects.ConfigFromEnv(i.Getenv)
	if err != nil {
		return archive.Archive{}, err
	}
	store, err := objects.New(config)
	return archive.Archive{Store: store, Bucket: p.bucket, Prefix: p.prefix}, err
}

func (i *invocation) archiveAuditCommand() *cobra.Command {
	var place archivePlace
	var deep, offline bool
	cmd := &cobra.Command{
		Use:         "audit",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Check that the archive is complete",
		Long: `audit checks that the archive has every message that the raw stream had. The batches
must cover all numbers from 1 without gap or overlap. Each batch must account for
every one of its numbers, and each of its objects must exist. The messages that the
stream has acknowledged must be archived. audit changes nothing and may run at any
time. An archive without messages of the server's present stream is a finding: the
server may be another one, or may have lost its stream.

Messages that were deleted, purged or expired before they could be archived are not
a finding: they are shown as gone.

Exit codes: 0 nothing is wrong, 1 error, 2 something is wrong.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := i.openArchive(cmd, place)
			if err != nil {
				return err
			}
			options := archive.AuditOptions{Deep: deep, Progress: i.auditProgress()}
			if !offline {
				if options.Stream, err = i.connectPipeline(cmd.Context()); err != nil {
					return err
				}
			}
			report, err := a.Audit(cmd.Context(), options)
			if errors.Is(err, pipeline.ErrNoStream) {
				return fmt.Errorf("there is no stream %s on %s; --offline audits the archive alone", pipeline.StreamRaw, options.Stream.Address())
			}
			if err != nil {
				return err
			}
			if err := i.emit(report, func(w io.Writer) error { return i.writeAudit(w, report) }); err != nil {
				return err
			}
			if !report.Clean() {
				return errChanges
			}
			return nil
		},
	}
	place.register(cmd.Flags())
	i.natsFlag(cmd)
	cmd.Flags().BoolVar(&deep, "deep", false, "read every object, and compare it with its record line by line")
	cmd.Flags().BoolVar(&offline, "offline", false, "audit the archive alone, without its stream")
	return cmd
}

// auditProgress shows the progress of a long audit from time to time.
func (i *invocation) auditProgress() func(done, total int) {
	const every = 5 * time.Second
	next := i.Now().Add(every)
	return func(done, total int) {
		if now := i.Now(); now.After(next) {
			next = now.Add(every)
			i.note("%d of %d read", done, total)
		}
	}
}

func (i *invocation) writeAudit(w io.Writer, r archive.Report) error {
	t := newTable("STREAM", "BATCHES", "OBJECTS", "MESSAGES", "REPLAYS", "SIZE", "UP TO", "TAKEN AT", "WAITING")
	for _, l := range r.Incarnations {
		waiting := ""
		if l.Live != nil {
			waiting = fmt.Sprint(l.Live.Waiting)
		}
		t.add(string(l.Incarnation), fmt.Sprint(l.Batches), fmt.Sprint(l.Objects), fmt.Sprint(l.Messages), fmt.Sprint(l.Replays),
			byteSize(l.Size), fmt.Sprint(l.Last), i.moment(l.To), waiting)
	}
	if err := t.write(w); err != nil {
		return err
	}
	lines := &lineWriter{w: w}
	for _, l := range r.Incarnations {
		for _, gone := range l.Gone {
			lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s %s: gone from the stream before they could be archived", l.Incarnation, gone)))
		}
		if l.Live != nil && len(l.Live.AckFloors) == 0 {
			lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s: no job writes this archive", l.Incarnation)))
		}
		if l.Live != nil && l.Live.UnderWay > 0 {
			lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s: %s being written", l.Incarnation, plural(l.Live.UnderWay, "object is", "objects are"))))
		}
	}
	for _, f := range r.Findings {
		where := string(f.Incarnation)
		if f.Numbers != nil {
			where += " " + f.Numbers.String()
		}
		text := fmt.Sprintf("! %s %s: %s", f.Kind, where, f.Text)
		if f.Key != "" {
			text += ": " + f.Key
		}
		lines.printf("%s", i.paint(red, clean(text)))
	}
	how := "by its keys and records; --deep reads every object"
	if r.Deep {
		how = "line by line"
	}
	lines.printf("")
	waiting := uint64(0)
	for _, l := range r.Incarnations {
		if l.Live != nil {
			waiting += l.Live.Waiting
		}
	}
	switch {
	case r.Clean() && waiting > 0:
		lines.printf("Archive %s/%s is complete except %s (%s).", r.Bucket, r.Prefix, plural(int(waiting), "message that waits", "messages that wait"), how)
	case r.Clean():
		lines.printf("Archive %s/%s is complete (%s).", r.Bucket, r.Prefix, how)
	default:
		lines.printf("Archive %s/%s has %s (%s).", r.Bucket, r.Prefix, plural(len(r.Findings), "finding", "findings"), how)
	}
	return lines.err
}

// byteSize writes a number of bytes for people.
func byteSize(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 10_000_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	}
	return fmt.Sprintf("%d GB", n/1_000_000_000)
}

// archiveFilter are the flags that select messages.
type archiveFilter struct{ archive.Filter }

func (f *archiveFilter) register(i *invocation, flags *pflag.FlagSet) {
	flags.StringVar(&f.Organization, "organization", "", "only messages of this organization")
	flags.StringVar(&f.Source, "source", "", "only messages of this source: csi, hobolink")
	flags.Var(sinceValue{&f.From, i.Now}, "from", "only messages received at this time or later: 2026-05-01T12:00:00Z, or PT1H ago")
	flags.Var(sinceValue{&f.To, i.Now}, "to", "only messages received before this time")
}

func (f *archiveFilter) check(cmd *cobra.Command) error {
	if f.Source != "" && f.Organization == "" {
		return misuse(cmd, "--source needs --organization")
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return misuse(cmd, "--from %s is not before --to %s", f.From.Format(time.RFC3339), f.To.Format(time.RFC3339))
	}
	return nil
}

// archiveRow is an object in the list.
type archiveRow struct {
	Key          string              `json:"key"`
	Organization string              `json:"organization"`
	Source       string              `json:"source"`
	Hour         time.Time           `json:"hour"`
	Incarnation  archive.Incarnation `json:"incarnation"`
	First        uint64              `json:"first"`
	Last         uint64              `json:"last"`
	Size         int64               `json:"size"`
}

func (i *invocation) archiveListCommand() *cobra.Command {
	var place archivePlace
	var filter archiveFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the objects that hold messages",
		Long: `list shows the objects of the archive that hold messages, with the hour in which
the raw stream received them, and the range of numbers of their batch.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.check(cmd); err != nil {
				return err
			}
			a, err := i.openArchive(cmd, place)
			if err != nil {
				return err
			}
			rows := []archiveRow{}
			for o, err := range a.Find(cmd.Context(), filter.Filter, "") {
				if err != nil {
					return err
				}
				rows = append(rows, archiveRow{
					Key: o.Key, Organization: o.Organization, Source: o.Source, Hour: o.Hour,
					Incarnation: o.Incarnation, First: o.First, Last: o.Last, Size: o.Size,
				})
			}
			i.noteEmpty("object", len(rows))
			return i.emit(rows, func(w io.Writer) error {
				t := newTable("ORGANIZATION", "SOURCE", "HOUR (UTC)", "NUMBERS", "SIZE", "KEY")
				for _, row := range rows {
					t.add(row.Organization, row.Source, row.Hour.Format("2006-01-02 15:04"),
						archive.Range{First: row.First, Last: row.Last}.String(), byteSize(row.Size), row.Key)
				}
				return t.write(w)
			})
		},
	}
	place.register(cmd.Flags())
	filter.register(i, cmd.Flags())
	return cmd
}

func (i *invocation) archiveCatCommand() *cobra.Command {
	var place archivePlace
	var filter archiveFilter
	cmd := &cobra.Command{
		Use:   "cat [KEY]",
		Short: "Write archived messages to standard output",
		Long: `cat writes the messages of an object, or all that the filters select, one line of
JSON each: number, time, subject, headers and body, as they are archived.`,
		Args: arguments("[KEY]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := filter.check(cmd); err != nil {
				return err
			}
			if len(args) == 0 && filter.Filter == (archive.Filter{}) {
				return misuse(cmd, "KEY or a filter is missing")
			}
			a, err := i.openArchive(cmd, place)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if _, ok := archive.ParseDataKey(args[0]); !ok {
					return fmt.Errorf("%s is not the key of an object with messages: starter archive list shows them", clean(args[0]))
				}
				return i.catObject(cmd.Context(), a, filter.Filter, args[0])
			}
			for o, err := range a.Find(cmd.Context(), filter.Filter, "") {
				if err != nil {
					return err
				}
				if err := i.catObject(cmd.Context(), a, filter.Filter, o.Key); err != nil {
					return err
				}
			}
			return nil
		},
	}
	place.register(cmd.Flags())
	filter.register(i, cmd.Flags())
	return cmd
}

// catObject writes the lines of an object that match a filter.
func (i *invocation) catObject(ctx context.Context, a archive.Archive, filter archive.Filter, key string) error {
	content, err := a.Read(ctx, key)
	if err != nil {
		return err
	}
	if filter.From.IsZero() && filter.To.IsZero() {
		_, err := i.Stdout.Write(content)
		return err
	}
	for m, err := range a.Messages(key, content) {
		if err != nil {
			return err
		}
		if !filter.Takes(m.Time) {
			continue
		}
		line, err := archive.AppendLine(nil, m)
		if err == nil {
			_, err = i.Stdout.Write(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
