package extract

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// hourAnswers bounds an hour, which is held in memory as a whole.
const hourAnswers = 4

// futureSlack is how far a logger's clock may be ahead of ours.
const futureSlack = 5 * time.Minute

type hoboTimeFrame struct {
	pipeline *pipeline.Client
	settings
}

// HoboTimeFrame makes the job type ExtractHoboTimeFrame. A nil client is enough
// to describe it.
//
// A run reads every logger from its bookmark to now, in windows of spec.Increment,
// and halves a window whose answer is cut. It publishes what it reads as raw and
// prepared messages; when the server has acknowledged all of a window, the
// bookmark moves to the window's end, but stays spec.Overlap behind now. What lies
// after the bookmark is read again in every run, and published again where it has
// changed, by the hour. Items that cannot be published go to quarantine.
func HoboTimeFrame(client *pipeline.Client, options ...Option) job.Type {
	h := &hoboTimeFrame{pipeline: client, settings: newSettings(options)}
	return job.NewType("ExtractHoboTimeFrame", job.WorkerExtract,
		"Reads a time frame of HOBO loggers from LI-COR Cloud and publishes it as raw and prepared messages.",
		h.handle, job.ModeRecurring, job.ModeOneShot, job.ModeQueued)
}

func (h *hoboTimeFrame) handle(ctx context.Context, run job.Run, spec HoboTimeFrameSpec) (job.Result, error) {
	spec = spec.named()
	token, err := run.Secret(spec.Token, cmp.Or(spec.BaseURL, hobolink.DefaultBaseURL))
	if err != nil {
		return job.Result{}, err
	}
	client, err := hobolink.New(hobolink.Config{BaseURL: spec.BaseURL, Token: token, HTTPClient: h.http, Ledger: h.pipeline.Rates()})
	if err != nil {
		return job.Result{}, err
	}
	// Reading has no effect, so that a stop ends it at once; publishing goes on.
	fetching, cancel := job.Until(ctx, run.Stopping(), 0)
	defer cancel()

	e := &extraction{
		run: run, spec: spec, pipeline: h.pipeline, client: client, fetching: fetching, now: h.now().UTC(),
		counts: map[string]int64{},
	}
	err = e.all(ctx)
	if err != nil && ctx.Err() == nil && job.Stopped(run) {
		err = job.ErrStopped
	}
	return e.result(), err
}

// extraction is one attempt of a run.
type extraction struct {
	run      job.Run
	spec     HoboTimeFrameSpec
	pipeline *pipeline.Client
	client   *hobolink.Client
	fetching context.Context //nolint:containedctx // ends before the run's own, see handle
	now      time.Time

	counts map[string]int64
	total  int64 // windows there will be
	behind int   // loggers that have more than MaxWindows
}

// all reads the loggers one after the other. A logger that the vendor refuses
// does not keep the others from being read; every other failure would hit them
// as well.
func (e *extraction) all(ctx context.Context) error {
	loggers := make([]*loggerRun, len(e.spec.Loggers))
	for i, logger := range e.spec.Loggers {
		l, err := e.open(ctx, logger)
		if err != nil {
			return err
		}
		loggers[i] = l
		windows := l.windows()
		if windows > int64(e.spec.MaxWindows) {
			windows = int64(e.spec.MaxWindows)
			e.behind++
		}
		e.total += windows
	}
	var refused []error
	for _, l := range loggers {
		err := l.read(ctx)
		if class := job.ClassOf(err); class == errclass.HobolinkRequest || class == errclass.HobolinkTooDense {
			e.run.Logger().Error("logger skipped", "logger", l.logger.Serial, "error", err)
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(refused) > 0 {
		return job.Fail(errclass.HobolinkRequest, "%d of %d loggers were refused, the first: %w", len(refused), len(loggers), refused[0])
	}
	return nil
}

func (e *extraction) result() job.Result {
	message := fmt.Sprintf("%d observations of %s up to %s in %d windows",
		e.counts["observations"], loggerCount(len(e.spec.Loggers)), e.now.Format(time.RFC3339), e.counts["windows"])
	if e.behind > 0 {
		message += fmt.Sprintf("; more of %s for the next run", loggerCount(e.behind))
	}
	return job.Result{Message: message, Counts: e.counts}
}

func loggerCount(n int) string {
	if n == 1 {
		return "1 logger"
	}
	return fmt.Sprintf("%d loggers", n)
}

// loggerRun reads one logger.
type loggerRun struct {
	*extraction
	logger   HoboLogger
	bookmark pipeline.Bookmark
	hours    published
	from     time.Time // a whole hour

	rawSubject string
	to         Destination
}

// bookmarkState stands beside the position in a bookmark.
type bookmarkState struct {
	Hours published `json:"hours"`
}

func (e *extraction) open(ctx context.Context, logger HoboLogger) (*loggerRun, error) {
	bookmark, err := e.pipeline.Bookmark(ctx, pipeline.BookmarkKey(e.run.Job().ID, logger.Serial))
	if err != nil {
		return nil, err
	}
	l := &loggerRun{
		extraction: e, logger: logger, bookmark: bookmark, hours: published{},
		rawSubject: pipeline.RawSubject(e.spec.OperationMode, e.spec.Organization, hoboSource),
		to: Destination{
			Operation: e.spec.OperationMode, Location: e.spec.Location, Database: e.spec.Database, Measurement: logger.Measurement,
		},
	}
	switch {
	case bookmark.Revision > 0:
		l.from = bookmark.Position
		var state bookmarkState
		// Without the digests everything after the bookmark is published again.
		if len(bookmark.State) > 0 && json.Unmarshal(bookmark.State, &state) == nil && state.Hours != nil {
			l.hours = state.Hours
		}
	case !e.spec.Start.IsZero():
		l.from = e.spec.Start
	default:
		l.from = e.now.Add(-e.spec.Backfill.Std())
	}
	l.from = l.from.UTC().Truncate(time.Hour)
	return l, nil
}

// end is the first second after the time frame.
func (e *extraction) end() time.Time { return e.now.Truncate(time.Second).Add(time.Second) }

func (l *loggerRun) windows() int64 {
	span, step := l.end().Sub(l.from), l.spec.Increment.Std()
	return max(0, int64((span+step-1)/step))
}

// read goes through the windows of the logger.
func (l *loggerRun) read(ctx context.Context) error {
	for n := 0; n < l.spec.MaxWindows && l.from.Before(l.end()); n++ {
		if job.Stopped(l.run) {
			return job.ErrStopped
		}
		to := l.from.Add(l.spec.Increment.Std())
		if to.After(l.end()) {
			to = l.end()
		}
		if err := l.span(ctx, l.from, to); err != nil {
			return err
		}
		if err := l.advance(ctx, to); err != nil {
			return err
		}
		l.from = to
		l.counts["windows"]++
		l.run.Checkpoint(job.Progress{
			Done: l.counts["windows"], Total: l.total,
			Message: fmt.Sprintf("logger %s up to %s", l.logger.Serial, to.Format(time.RFC3339)),
		}, nil)
	}
	return nil
}

// advance moves the bookmark to the end of a window that is published.
func (l *loggerRun) advance(ctx context.Context, to time.Time) error {
	position := to
	if open := l.now.Add(-l.spec.Overlap.Std()); open.Before(position) {
		position = open
	}
	position = position.Truncate(time.Hour)
	// A longer spec.Overlap than before does not move the bookmark back; nor does
	// a start that lies after what is read again.
	if floor := l.bookmark.Position; l.bookmark.Revision > 0 && position.Before(floor) {
		position = floor
	} else if l.bookmark.Revision == 0 && position.Before(l.from) {
		position = l.from
	}
	for start := range l.hours {
		if start < position.Unix() {
			delete(l.hours, start)
		}
	}
	next, err := l.pipeline.Advance(ctx, l.bookmark, position, bookmarkState{Hours: l.hours}, l.run.ID())
	if err != nil {
		return err
	}
	l.bookmark = next
	return nil
}

// span publishes [from, to), halved where the vendor's answer is cut. Halves meet
// at whole hours, so that an hour is always published as a whole.
func (l *loggerRun) span(ctx context.Context, from, to time.Time) error {
	answer, err := l.data(from, to)
	if err != nil {
		return err
	}
	if !answer.Truncated {
		return l.publish(ctx, from, to, answer)
	}
	if to.Sub(from) <= time.Hour {
		answer = hobolink.Answer{}
		if err := l.halves(from, to, &answer); err != nil {
			return err
		}
		return l.publish(ctx, from, to, answer)
	}
	middle := from.Add(to.Sub(from) / 2).Truncate(time.Hour)
	if !middle.After(from) {
		middle = from.Add(time.Hour)
	}
	if err := l.span(ctx, from, middle); err != nil {
		return err
	}
	return l.span(ctx, middle, to)
}

// halves reads an hour at most, whose answer is cut, in two, and adds what it reads
// to what was read of the hour.
func (l *loggerRun) halves(from, to time.Time, hour *hobolink.Answer) error {
	if to.Sub(from) <= time.Second {
		return job.Fail(errclass.HobolinkTooDense, "hobolink %s: logger %s has more at %s than an answer may hold",
			l.client.Address(), l.logger.Serial, from.Format(time.RFC3339))
	}
	middle := from.Add(to.Sub(from) / 2).Truncate(time.Second)
	for _, half := range [][2]time.Time{{from, middle}, {middle, to}} {
		answer, err := l.data(half[0], half[1])
		if err == nil && answer.Truncated {
			err = l.halves(half[0], half[1], hour)
		}
		if err != nil {
			return err
		}
		hour.Observations = append(hour.Observations, answer.Observations...)
		hour.Rejected = append(hour.Rejected, answer.Rejected...)
		hour.Bytes += answer.Bytes
		items := len(hour.Observations) + len(hour.Rejected)
		if items > hourAnswers*hobolink.MaxItems || hour.Bytes > hourAnswers*hobolink.MaxBytes {
			return job.Fail(errclass.HobolinkTooDense, "hobolink %s: logger %s has more in the hour from %s than %d answers may hold",
				l.client.Address(), l.logger.Serial, from.Truncate(time.Hour).Format(time.RFC3339), hourAnswers)
		}
	}
	return nil
}

func (l *loggerRun) data(from, to time.Time) (hobolink.Answer, error) {
	l.counts["requests"]++
	// The vendor counts both ends in.
	return l.client.Data(l.fetching, hobolink.Frame{Logger: l.logger.Serial, Start: from, End: to.Add(-time.Second)})
}

// publish publishes what an answer says about [from, to), apart from hours that
// an earlier run has published as they are.
func (l *loggerRun) publish(ctx context.Context, from, to time.Time, answer hobolink.Answer) error {
	var refused []pipeline.Quarantined
	for _, rejected := range answer.Rejected {
		refused = append(refused, l.quarantined(errclass.BadObservation, rejected.Reason, rejected.Raw))
	}
	good := make([]hobolink.Observation, 0, len(answer.Observations))
	for _, o := range answer.Observations {
		switch {
		case o.Logger != l.logger.Serial:
			refused = append(refused, l.quarantined(errclass.ForeignLogger, "an observation of logger "+o.Logger, o.Raw))
		case o.Time.After(l.now.Add(futureSlack)):
			refused = append(refused, l.quarantined(errclass.FutureTimestamp,
				fmt.Sprintf("an observation from %s, read at %s", o.Time.Format(time.RFC3339), l.now.Format(time.RFC3339)), o.Raw))
		default:
			good = append(good, o)
		}
	}
	l.counts["observations"] += int64(len(answer.Observations) + len(answer.Rejected))

	hours, err := l.messages(good)
	if err != nil {
		return err
	}
	var messages []pipeline.Outgoing
	fresh, begun := published{}, published{}
	for _, h := range hours {
		// Of an hour that is not in this span the answer may hold only a part.
		inside := !h.start.Before(from) && h.start.Before(to)
		last := revision{}
		if inside {
			last = l.hours[h.start.Unix()]
		}
		samples, next := h.since(last)
		for _, r := range h.samples[:len(h.samples)-len(samples)] {
			l.counts["unchanged"] += int64(len(r.outgoing(0)))
		}
		for _, r := range samples {
			for i, out := range r.outgoing(next.changes) {
				if err := l.pipeline.CheckSize(out); err != nil {
					refused = append(refused, l.tooLarge(r, err)...)
					continue
				}
				messages = append(messages, out)
				if i == 0 {
					l.counts["raw"]++
				} else {
					l.counts["prepared"]++
				}
			}
		}
		if inside {
			fresh[h.start.Unix()] = next
		}
		if next.changes != last.changes {
			begun[h.start.Unix()] = revision{changes: next.changes}
		}
	}
	kept, err := l.pipeline.Quarantine(ctx, refused)
	if err != nil {
		return err
	}
	l.counts["quarantined"] += kept.Stored
	if err := l.begin(ctx, begun); err != nil {
		return err
	}
	result, err := l.pipeline.Publish(ctx, messages)
	l.counts["duplicates"] += result.Duplicates
	if err != nil {
		return err
	}
	maps.Copy(l.hours, fresh)
	return nil
}

// begin notes hours that are about to be published otherwise than before. Should
// this run end in between, the next one must not find them as they were, even if
// the vendor has taken the change back by then.
func (l *loggerRun) begin(ctx context.Context, hours published) error {
	if len(hours) == 0 {
		return nil
	}
	maps.Copy(l.hours, hours)
	next, err := l.pipeline.Advance(ctx, l.bookmark, l.bookmark.Position, bookmarkState{Hours: l.hours}, l.run.ID())
	if err != nil {
		return err
	}
	l.bookmark = next
	return nil
}
