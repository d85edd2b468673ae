package imports

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/unpack"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// chunk is how many rows are published before the place is saved, at most, and
	// chunkBytes how many bytes of messages.
	chunk      = 500
	chunkBytes = 8 << 20
)

type importFile struct {
	pipeline *pipeline.Client
	store    *objects.Store
	at       places.Places
}

// File makes the job type ImportFile. Nil clients are enough to describe it; a worker
// without an S3 store fails its runs.
//
// It publishes the records of an uploaded file as raw messages of the flow bulk, in the
// form of those that LoggerNet's records have. What is no record goes to quarantine. A
// bookmark notes that an object was imported by a spec: a second run publishes nothing.
func File(client *pipeline.Client, store *objects.Store, at places.Places) job.Type {
	h := &importFile{pipeline: client, store: store, at: at}
	return job.NewType("ImportFile", job.WorkerExtract,
		"Publishes the records of a data logger's file, which was uploaded, as raw messages.",
		h.handle, job.ModeOneShot, job.ModeQueued)
}

// cursor is how far a run is.
type cursor struct {
	ETag string    `json:"etag"`
	At   time.Time `json:"at"` // written into the messages, the same in each attempt
	// Lines are the rows and refused lines of all files that are published.
	Lines int64 `json:"lines"`
	Totals
	FirstRefused []RefusedLine `json:"first_refused,omitempty"`
}

// importing is one attempt.
type importing struct {
	run      job.Run
	spec     FileSpec
	pipeline *pipeline.Client
	subject  string
	series   *pipeline.Series
	object   *objects.Reader
	saved    cursor // what the attempt began with
	at       cursor
	messages []pipeline.Outgoing
	ids      map[string]bool // of messages
	refused  []pipeline.Quarantined
	bytes    int // of messages and refused
	files    []FileReport
	listed   int     // columns of files
	stored   *stored // of a dry run
}

func (h *importFile) handle(ctx context.Context, run job.Run, spec FileSpec) (job.Result, error) {
	if h.store == nil {
		return job.Result{}, job.Fail(errclass.StoreUnreachable, "this worker has no S3 store: neither %s nor %s is set", objects.EnvAccessKey, objects.EnvCredentialsFile)
	}
	if err := h.at.CheckUploadBucket(spec.Bucket, spec.Key); err != nil {
		return job.Result{}, err
	}
	i := &importing{
		run: run, spec: spec, pipeline: h.pipeline, series: h.pipeline.Series(),
		subject: pipeline.RawSubject(pipeline.OperationBulk, spec.Organization, ldmp.Source), ids: map[string]bool{},
	}
	if _, err := run.Cursor(&i.saved); err != nil {
		return job.Result{}, err
	}
	if spec.DryRun {
		var err error
		if i.stored, err = newStored(ctx, run, h.at, spec.Organization); err != nil {
			return job.Result{}, err
		}
	}
	object, err := h.store.Open(ctx, spec.Bucket, spec.Key, cmp.Or(i.saved.ETag, spec.ETag))
	if err != nil {
		return job.Result{}, err
	}
	defer func() { _ = object.Close() }()
	i.object = object
	if i.at = i.saved; i.at.ETag == "" {
		i.at.ETag, i.at.At = object.Info().ETag, time.Now().UTC().Truncate(time.Second)
	}
	return i.all(ctx)
}

// all imports the object, unless it was before.
func (i *importing) all(ctx context.Context) (job.Result, error) {
	bookmark, err := i.pipeline.Bookmark(ctx, i.bookmarkKey())
	if err != nil {
		return job.Result{}, err
	}
	before := bookmark.UpdatedBy
	switch {
	case before == "" || i.spec.DryRun:
	case before == i.run.ID(): // this attempt's result was lost
		if err := json.Unmarshal(bookmark.State, &i.at.Totals); err != nil {
			return job.Result{}, job.Fail(errclass.BadBookmark, "bookmark %s: %w", bookmark.Key, err)
		}
		return i.result(i.summary(), ""), nil
	default:
		message := fmt.Sprintf("%s was imported by run %s: nothing published", i.name(""), before)
		return i.result(message, before), nil
	}
	if err := i.read(ctx); err != nil {
		if format := (*loggerfiles.FormatError)(nil); errors.As(err, &format) {
			err = job.Fail(errclass.InvalidFile, "%s: %w", i.name(""), err)
		}
		return i.result(i.summary(), before), err
	}
	if i.at.Rows == i.at.Refused && i.at.Refused > 0 {
		return i.result(i.summary(), before), job.Fail(errclass.InvalidFile, "%s: none of its %d lines is a record: %s",
			i.name(""), i.at.Refused, i.at.FirstRefused[0].Reason)
	}
	if i.spec.DryRun {
		return i.result(i.summary()+i.stored.summary()+"; a dry run publishes nothing", before), nil
	}
	if _, err := i.pipeline.Advance(ctx, bookmark, i.at.At, i.at.Totals, i.run.ID()); err != nil {
		return i.result(i.summary(), before), err
	}
	message := i.summary()
	if !i.pipeline.Consumed(ctx, pipeline.StreamRaw, i.subject) {
		message += "; nobody takes them: no prepare job of the flow bulk and of this organization has run yet"
	}
	return i.result(message, before), nil
}

// BookmarkJob is what stands for a job in the keys of bookmarks of an organization's imports:
// those of all its jobs are one list.
func BookmarkJob(organization string) string { return "import_file." + organization }

// bookmarkKey names the bookmark that says that the object was imported by the spec.
func (i *importing) bookmarkKey() string {
	spec := i.spec
	spec.ETag, spec.DryRun, spec.MaxRefused = i.at.ETag, false, 0
	return pipeline.BookmarkKey(BookmarkJob(spec.Organization), spec.Station+"="+pipeline.ID(string(job.EncodeJSON(spec))))
}

func (i *importing) result(message, before string) job.Result {
	t := i.at.Totals
	report := Report{
		Bucket: i.spec.Bucket, Key: i.spec.Key, ETag: i.at.ETag, Bytes: i.object.Info().Size, ImportedBy: before,
		Totals: t, FirstRefused: i.at.FirstRefused, Files: i.files,
	}
	if i.stored != nil {
		report.Compared, report.Notes = i.stored.reports, i.stored.notes
	}
	return job.Result{
		Message: message,
		Counts:  map[string]int64{"files": t.Files, "rows": t.Rows, "stored": t.Stored, "repeated": t.Repeated, "refused": t.Refused},
		Output:  job.EncodeJSON(report),
	}
}

// name is the name of a file for people.
func (i *importing) name(file string) string {
	name := i.spec.Bucket + "/" + i.spec.Key
	if file != "" {
		name += ", file " + file
	}
	return name
}

func (i *importing) summary() string {
	t := i.at.Totals
	text := fmt.Sprintf("%d rows of %s: %d stored, %d repeated, %d refused", t.Rows, i.name(""), t.Stored, t.Repeated, t.Refused)
	if i.spec.DryRun {
		text = fmt.Sprintf("%d rows of %s: %d refused", t.Rows, i.name(""), t.Refused)
	}
	if !t.First.IsZero() {
		text += fmt.Sprintf("; from %s to %s", t.First.Format(time.RFC3339), t.Last.Format(time.RFC3339))
	}
	return text
}

// read reads all files of the object.
func (i *importing) read(ctx context.Context) error {
	files, err := unpack.Files(i.object, i.object.Info().Size, i.spec.Folder)
	if err != nil {
		return err
	}
	passed := int64(0) // lines of earlier attempts
	i.at.Files = int64(len(files))
	for _, file := range files {
		if err := i.file(ctx, file, &passed); err != nil {
			return err
		}
	}
	if i.spec.DryRun {
		if err := i.stored.end(ctx); err != nil {
			return err
		}
	}
	return i.publish(ctx)
}

// file reads a file.
func (i *importing) file(ctx context.Context, file unpack.File, passed *int64) error {
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	inFile := func(err error) error {
		if format := (*loggerfiles.FormatError)(nil); file.Name != "" && errors.As(err, &format) {
			return fmt.Errorf("file %s: %w", file.Name, err)
		}
		return err
	}
	reader, err := i.spec.open(content)
	if err != nil {
		return inFile(err)
	}
	table := reader.Table()
	fields, err := i.spec.fields(table)
	if err != nil {
		return inFile(err)
	}
	var l *look
	if i.spec.DryRun && len(i.files) < maxFiles {
		l = newLook(file.Name, table, i.spec.tableName(table), fields, maxColumns-i.listed)
		i.listed += len(l.Columns)
	}
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		refused := (*loggerfiles.Refused)(nil)
		if err != nil && !errors.As(err, &refused) {
			return inFile(err)
		}
		if *passed < i.saved.Lines {
			if *passed++; *passed%chunk == 0 && job.Stopped(i.run) {
				return job.ErrStopped
			}
			continue
		}
		if now := reader.Table(); now != table { // another header follows in the file
			if fields, err = i.spec.fields(now); err != nil {
				return inFile(err)
			}
			table = now
		}
		if refused != nil {
			if l != nil {
				l.Refused++
			}
			i.refuse(file.Name, refused.Position, refused.Raw, errclass.BadRecord, refused.Reason)
		} else {
			span(&i.at.First, &i.at.Last, record.Time)
			if l != nil {
				l.row(record.Time)
			}
			if err := i.add(ctx, file.Name, table, fields, record); err != nil {
				return err
			}
		}
		// Not before: what is saved on the way does not have it yet.
		i.at.Lines++
		i.at.Rows++
		tooMany := i.at.Refused > i.spec.MaxRefused
		if i.at.Lines%chunk == 0 || i.bytes >= chunkBytes || tooMany {
			if err := i.publish(ctx); err != nil {
				return err
			}
		}
		if tooMany {
			return job.Fail(errclass.InvalidFile, "%s: more than %d lines are refused; the first one: %s",
				i.name(""), i.spec.MaxRefused, i.at.FirstRefused[0].Reason)
		}
	}
	if l != nil {
		i.files = append(i.files, l.report())
	}
	return nil
}

// refuse takes a line or frame that is no record.
func (i *importing) refuse(file string, at loggerfiles.Position, raw []byte, class, reason string) {
	i.at.Refused++
	if len(i.at.FirstRefused) < maxLines {
		i.at.FirstRefused = append(i.at.FirstRefused, RefusedLine{File: job.Cut(file, maxName), Line: at.Line, Offset: at.Offset, Reason: job.Cut(reason, 300)})
	}
	if i.spec.DryRun {
		return
	}
	// Place and content, so that equal lines of a file are items of their own.
	item := refusedItem{Bucket: i.spec.Bucket, Key: i.spec.Key, RefusedLine: RefusedLine{File: file, Line: at.Line, Offset: at.Offset, Reason: reason}}
	if at.Line > 0 && utf8.Valid(raw) {
		item.Text = string(raw)
	} else {
		item.Bytes = raw
	}
	body := job.EncodeJSON(item)
	i.refused = append(i.refused, pipeline.Quarantined{
		Stage: pipeline.StageExtract, Operation: pipeline.OperationBulk, Name: i.spec.Organization + "." + ldmp.Source,
		Class: class, Reason: fmt.Sprintf("%s, %s: %s", i.name(file), at, reason),
		Job: i.run.Job().ID, Subject: i.subject, Body: body,
	})
	i.bytes += len(body)
}

// refusedItem is the body of an item in quarantine.
type refusedItem struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	RefusedLine
	Text  string `json:"text,omitempty"`  // of a line of UTF-8
	Bytes []byte `json:"bytes,omitempty"` // of another line, or a frame, in base64
}

// add takes a row.
func (i *importing) add(ctx context.Context, file string, table *loggerfiles.Table, fields []field, record loggerfiles.Record) error {
	at, offset := clockOf(record.Time)
	number := record.Number
	if !record.Numbered {
		number = record.Time.UnixMilli()
	}
	name := i.spec.tableName(table)
	payload := ldmp.Record{Number: number, Station: i.spec.Station, Table: name, Time: at.Format("2006-01-02T15:04:05.999999999")}
	for _, f := range fields {
		f.Value = record.Values[f.place]
		payload.Fields = append(payload.Fields, f.Field)
	}
	message, err := extract.RecordMessage(i.subject, pipeline.Context{
		ImportedAt: i.at.At, OrgSlug: i.spec.Organization, Source: ldmp.Source, Station: i.spec.Station, Table: name, UTCOffset: offset,
		Other: map[string]json.RawMessage{"file_name": job.EncodeJSON(i.spec.Key)},
	}, payload, string(offset)) // what was imported with a wrong zone is no repeat
	if err != nil {
		return err
	}
	if err := i.pipeline.CheckSize(message); err != nil {
		i.refuse(file, record.Position, nil, errclass.MessageTooLarge, err.Error())
		return nil
	}
	if i.spec.DryRun {
		return i.stored.add(ctx, message)
	}
	// A row that comes again within a series is published behind the others once more: each
	// time it is in a series of its own, or rows that alternate would never be in order.
	if i.ids[message.ID] {
		if err := i.publish(ctx); err != nil {
			return err
		}
	}
	i.messages = append(i.messages, message)
	i.ids[message.ID] = true
	i.bytes += len(message.Body)
	return nil
}

// publish publishes what was gathered, and saves the place.
func (i *importing) publish(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !i.spec.DryRun {
		if err := i.series.Wait(ctx, i.run, i.at.Rows); err != nil {
			return err
		}
		if _, err := i.pipeline.Quarantine(ctx, i.refused); err != nil {
			return err
		}
		published, err := i.series.Publish(ctx, i.messages)
		if err != nil {
			return err
		}
		i.at.Stored += published.Stored
		i.at.Repeated += published.Duplicates
	}
	i.messages, i.refused, i.bytes = i.messages[:0], i.refused[:0], 0
	clear(i.ids)
	var saved any
	if !i.spec.DryRun {
		saved = i.at
	}
	i.run.Checkpoint(job.Progress{Done: i.at.Rows, Message: i.summary()}, saved)
	if job.Stopped(i.run) {
		return job.ErrStopped
	}
	return nil
}
