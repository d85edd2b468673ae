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
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) archiveCommand() *cobra.Command {
	cmd := group("archive", "Audit, list and read the archive of raw messages",
		i.archiveAuditCommand(), i.archiveListCommand(), i.archiveCatCommand())
	cmd.Long = `archive reads the S3 archive that post_to_archive jobs write. Without --server, its
settings are those of the workers: DENDRA_S3_ENDPOINT, DENDRA_S3_ACCESS_KEY, DENDRA_S3_SECRET_KEY,
DENDRA_S3_REGION. audit also reads the NATS server of DENDRA_NATS_URL, or --nats.
Temporal is not needed.`
	return cmd
}

// archivePlace are the flags for the location of an archive.
type archivePlace struct{ bucket, prefix string }

func (p *archivePlace) register(flags *pflag.FlagSet) {
	flags.StringVar(&p.bucket, "bucket", "archive", "bucket of the archive")
	flags.StringVar(&p.prefix, "prefix", "", "text before all keys, as in the job's spec")
}

func (p *archivePlace) message(cmd *cobra.Command) (*jobsv1.ArchivePlace, error) {
	if p.prefix != "" && !strings.HasSuffix(p.prefix, "/") {
		return nil, misuse(cmd, "--prefix %s does not end with a slash", p.prefix)
	}
	return &jobsv1.ArchivePlace{Bucket: p.bucket, Prefix: p.prefix}, nil
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
			request := &jobsv1.AuditArchiveRequest{Deep: deep, Offline: offline}
			var err error
			if request.Place, err = place.message(cmd); err != nil {
				return err
			}
			report, err := i.audit(cmd.Context(), request)
			if err != nil {
				return err
			}
			if err := i.emit(report, func(w io.Writer) error { return i.writeAudit(w, report) }); err != nil {
				return err
			}
			if report.GetFindingCount() > 0 {
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

// auditProgressEvery is how often the progress of a long audit is shown.
const auditProgressEvery = 5 * time.Second

// audit has the archive audited, and gives the report.
func (i *invocation) audit(ctx context.Context, request *jobsv1.AuditArchiveRequest) (*jobsv1.ArchiveReport, error) {
	stream, err := i.api.Archive.AuditArchive(ctx, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // It is at its end, or left.
	next := i.Now().Add(auditProgressEvery)
	for {
		message, err := stream.Receive()
		if err != nil {
			return nil, err
		}
		if message.GetReport() != nil {
			return message.GetReport(), nil
		}
		if now := i.Now(); now.After(next) {
			next = now.Add(auditProgressEvery)
			i.note("%d of %d read", message.GetDone(), message.GetTotal())
		}
	}
}

func (i *invocation) writeAudit(w io.Writer, r *jobsv1.ArchiveReport) error {
	t := newTable("STREAM", "BATCHES", "OBJECTS", "MESSAGES", "REPLAYS", "SIZE", "UP TO", "TAKEN AT", "WAITING")
	all := int64(0)
	for _, s := range r.GetStreams() {
		waiting := ""
		if s.GetPresent() != nil {
			waiting = fmt.Sprint(s.GetPresent().GetWaiting())
			all += s.GetPresent().GetWaiting()
		}
		t.add(s.GetName(), fmt.Sprint(s.GetBatches()), fmt.Sprint(s.GetObjects()), fmt.Sprint(s.GetMessages()), fmt.Sprint(s.GetReplays()),
			byteSize(s.GetSize()), fmt.Sprint(s.GetLastSequence()), i.moment(toTime(s.GetLastTime())), waiting)
	}
	if err := t.write(w); err != nil {
		return err
	}
	lines := &lineWriter{w: w}
	for _, s := range r.GetStreams() {
		for _, gone := range s.GetGone() {
			lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s %s: gone from the stream before they could be archived", s.GetName(), rangeText(gone))))
		}
		if s.GetPresent() != nil && len(s.GetPresent().GetAckFloors()) == 0 {
			lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s: no job writes this archive", s.GetName())))
		}
		if underWay := s.GetPresent().GetUnderWay(); underWay > 0 {
			lines.printf("%s", i.paint(faint, fmt.Sprintf("= %s: %s being written", s.GetName(), plural(int(underWay), "object is", "objects are"))))
		}
	}
	for _, f := range r.GetFindings() {
		where := f.GetStream()
		if f.GetSequences() != nil {
			where += " " + rangeText(f.GetSequences())
		}
		text := fmt.Sprintf("! %s %s: %s", f.GetKind(), where, f.GetText())
		if f.GetKey() != "" {
			text += ": " + f.GetKey()
		}
		lines.printf("%s", i.paint(red, clean(text)))
	}
	if more := int(r.GetFindingCount()) - len(r.GetFindings()); more > 0 {
		lines.printf("! and %d more", more)
	}
	how := "by its keys and records; --deep reads every object"
	if r.GetDeep() {
		how = "line by line"
	}
	lines.printf("")
	name := r.GetPlace().GetBucket() + "/" + r.GetPlace().GetPrefix()
	switch {
	case r.GetFindingCount() > 0:
		lines.printf("Archive %s has %s (%s).", name, plural(int(r.GetFindingCount()), "finding", "findings"), how)
	case all > 0:
		lines.printf("Archive %s is complete except %s (%s).", name, plural(int(all), "message that waits", "messages that wait"), how)
	default:
		lines.printf("Archive %s is complete (%s).", name, how)
	}
	return lines.err
}

// rangeText writes "7" or "7–12".
func rangeText(r *jobsv1.SequenceRange) string {
	if r.GetFirst() == r.GetLast() {
		return fmt.Sprint(r.GetFirst())
	}
	return fmt.Sprintf("%d–%d", r.GetFirst(), r.GetLast())
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
type archiveFilter struct {
	organization, source string
	from, to             time.Time
}

func (f *archiveFilter) register(i *invocation, flags *pflag.FlagSet) {
	flags.StringVar(&f.organization, "organization", "", "only messages of this organization")
	flags.StringVar(&f.source, "source", "", "only messages of this source: csi, hobolink")
	flags.Var(sinceValue{&f.from, i.Now}, "from", "only messages received at this time or later: 2026-05-01T12:00:00Z, or PT1H ago")
	flags.Var(sinceValue{&f.to, i.Now}, "to", "only messages received before this time")
}

func (f *archiveFilter) message(cmd *cobra.Command) (*jobsv1.ArchiveFilter, error) {
	if f.source != "" && f.organization == "" {
		return nil, misuse(cmd, "--source needs --organization")
	}
	m := &jobsv1.ArchiveFilter{Organization: f.organization, Source: f.source}
	if !f.from.IsZero() {
		m.StartTime = timestamppb.New(f.from)
	}
	if !f.to.IsZero() {
		m.EndTime = timestamppb.New(f.to)
	}
	if !f.from.IsZero() && !f.to.IsZero() && !f.from.Before(f.to) {
		return nil, misuse(cmd, "--from %s is not before --to %s", f.from.Format(time.RFC3339), f.to.Format(time.RFC3339))
	}
	return m, nil
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
			request := &jobsv1.ListArchiveObjectsRequest{}
			var err error
			if request.Filter, err = filter.message(cmd); err != nil {
				return err
			}
			if request.Place, err = place.message(cmd); err != nil {
				return err
			}
			list, err := listAll(cmd.Context(), i.api.Archive.ListArchiveObjects, request)
			if err != nil {
				return err
			}
			i.noteEmpty("object", len(list.GetObjects()))
			return i.emit(list, func(w io.Writer) error {
				t := newTable("ORGANIZATION", "SOURCE", "HOUR (UTC)", "NUMBERS", "SIZE", "KEY")
				for _, o := range list.GetObjects() {
					t.add(o.GetOrganization(), o.GetSource(), toTime(o.GetHour()).UTC().Format("2006-01-02 15:04"),
						rangeText(o.GetSequences()), byteSize(o.GetSize()), o.GetKey())
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
			request := &jobsv1.ReadArchiveRequest{}
			var err error
			if request.Filter, err = filter.message(cmd); err != nil {
				return err
			}
			if len(args) == 0 && filter == (archiveFilter{}) {
				return misuse(cmd, "KEY or a filter is missing")
			}
			if request.Place, err = place.message(cmd); err != nil {
				return err
			}
			if len(args) > 0 {
				request.Key = args[0]
			}
			return i.catArchive(cmd.Context(), request)
		},
	}
	place.register(cmd.Flags())
	filter.register(i, cmd.Flags())
	return cmd
}

// catArchive writes the lines that a request asks for.
func (i *invocation) catArchive(ctx context.Context, request *jobsv1.ReadArchiveRequest) error {
	stream, err := i.api.Archive.ReadArchive(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // It is at its end, or left.
	for {
		message, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = i.Stdout.Write(message.GetLines())
		}
		if err != nil {
			return err
		}
	}
}
