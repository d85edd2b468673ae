package job

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// Recurring runs a job at times that are known ahead: on a fixed interval, or
// at the times of a cron text. What is not set has a default, which a
// definition does not spell out.
type Recurring struct {
	// RecurEvery is the interval between two starts, counted from the Unix
	// epoch, in whole seconds, the resolution of a Temporal Schedule. Exactly one of RecurEvery and Cron is set.
	RecurEvery Duration `json:"recur_every,omitzero" minimum:"PT1S" example:"PT15M" help:"the interval between two starts: whole seconds; exactly one of recur_every and cron is set"`
	// Offset shifts the interval. Shorter than RecurEvery and in
	// whole seconds. Without it the job id gives the shift, so that jobs of the
	// same interval do not all start in the same second.
	Offset *Duration `json:"offset,omitempty" example:"PT5M" help:"shifts the interval: whole seconds, shorter than recur_every; without it, the job id gives a shift"`
	// Cron has the five fields of crontab(5): see [recurrence.ParseCron], and
	// [recurrence.Times.Calendars] for the times that clocks skip or show twice.
	Cron string `json:"cron,omitempty" example:"30 4 * * mon-fri" help:"five fields: minute, hour, day of month, month, day of week"`
	// TimeZone is the IANA name of the zone that Cron is meant in. Defaults to UTC.
	TimeZone string `json:"time_zone,omitempty" default:"UTC" example:"Europe/Prague" help:"the zone of cron, by its IANA name"`
	// Jitter delays each start by up to as much: by how much is fixed for each
	// job and start. Shorter than [Recurring.Period]. Defaults to none.
	Jitter Duration `json:"jitter,omitzero" example:"PT1M" help:"delays each start by a part of it, which depends on the job and the start; shorter than the time between two starts"`
	// Overlap says what happens when a start is due while a run is under way.
	// Defaults to skip, and to buffer_all with the misfire policy all.
	Overlap Overlap `json:"overlap,omitempty" enum:"skip,buffer_one,buffer_all,cancel_other,terminate_other,allow_all" default:"skip" help:"what happens when a start is due while a run is under way; buffer_all is the default with misfire all"`
	// Misfire says what becomes of the starts that an outage of the server made
	// the job miss. Defaults to once; overlap policies that have several starts
	// wait or run make up for each in the catch-up window unless once is written.
	Misfire Misfire `json:"misfire,omitempty" enum:"skip,once,all" default:"once" help:"what becomes of the starts that an outage of the server made the job miss: nothing, one run for all, or a run for each"`
	// MaxMissed is how many missed starts are made up for with the misfire
	// policy all: the newest ones. A schedule buffers 1000. Defaults to 100.
	MaxMissed int `json:"max_missed,omitempty" minimum:"1" maximum:"1000" default:"100" help:"how many missed starts are made up for with misfire all, the newest ones"`
	// CatchupWindow is how late a start may be after an outage before it is
	// given up. For its default see [Recurring.Catchup].
	CatchupWindow Duration `json:"catchup_window,omitzero" minimum:"PT10S" example:"PT1H" help:"how late a start may be, after an outage, before it is given up; by default it comes from misfire"`
	// StartAt and EndAt limit the times of starts, both inclusive, jitter aside.
	// Default to no limit.
	StartAt time.Time `json:"start_at,omitzero" help:"no start is before it"`
	EndAt   time.Time `json:"end_at,omitzero" help:"no start is after it; later than start_at"`
	// PauseAfterFailures holds starts back after so many runs in a row that failed;
	// canceled ones do not count. The job is then tried ever more rarely, until a run
	// succeeds or the definition changes. Not with overlap allow_all, whose runs have
	// no order. Defaults to 0, never.
	PauseAfterFailures int `json:"pause_after_failures,omitempty" minimum:"0" example:"5" help:"failed runs in a row after which starts are held back and the job is tried more rarely; 0 means never, the default"`
	// RetryEvery is the wait before the first such try, from start to start: starts
	// before it are held back. It doubles after each, up to an hour, or stays if it is
	// longer. Defaults to [Recurring.Period], and to one minute if that
	// is longer.
	RetryEvery Duration `json:"retry_every,omitzero" minimum:"PT1S" example:"PT10M" help:"first wait between tries; it doubles up to an hour; by default one interval, at least one minute"`
}

// Overlap says what happens when a start of a recurring job is due while a run
// of it is under way.
type Overlap string

// The overlap policies.
const (
	OverlapSkip           Overlap = "skip"            // the start is dropped
	OverlapBufferOne      Overlap = "buffer_one"      // one start waits for the run to end, further ones are dropped
	OverlapBufferAll      Overlap = "buffer_all"      // all starts wait, and run one after the other
	OverlapCancelOther    Overlap = "cancel_other"    // the run is asked to stop; the start waits for its end
	OverlapTerminateOther Overlap = "terminate_other" // the run is ended without a chance to save its position
	OverlapAllowAll       Overlap = "allow_all"       // runs are side by side
)

// Overlaps lists every overlap policy in the order of the documentation.
func Overlaps() []Overlap {
	return []Overlap{
		OverlapSkip, OverlapBufferOne, OverlapBufferAll, OverlapCancelOther, OverlapTerminateOther, OverlapAllowAll,
	}
}

// OverlapPolicy is Overlap or its default.
func (r Recurring) OverlapPolicy() Overlap {
	switch {
	case r.Overlap != "":
		return r.Overlap
	case r.Misfire == MisfireAll:
		return OverlapBufferAll
	default:
		return OverlapSkip
	}
}

// Zone is the name of the time zone that Cron is meant in: TimeZone or its default.
func (r Recurring) Zone() string {
	if r.TimeZone == "" {
		return "UTC"
	}
	return r.TimeZone
}

// Period is the interval, or the shortest time between two starts that the
// minutes and hours of Cron give, a day at most. It is zero if neither is valid.
func (r Recurring) Period() Duration {
	if r.Cron == "" {
		return r.RecurEvery
	}
	cron, err := recurrence.ParseCron(r.Cron)
	if err != nil {
		return 0
	}
	return Duration(cron.ShortestGap())
}

// Phase is Offset or its default: a shift in whole seconds, shorter than
// RecurEvery, that depends on the job id alone and spreads jobs of the same
// interval over it. It is zero for a cron text.
func (r Recurring) Phase(jobID string) Duration {
	if r.Offset != nil {
		return *r.Offset
	}
	seconds := int64(r.RecurEvery / Duration(time.Second))
	if seconds <= 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(jobID))                                      // A hash takes everything.
	return Duration(h.Sum64()%uint64(seconds)) * Duration(time.Second) //nolint:gosec // Below an interval.
}

// Times gives the nominal starts of the job with the id. It fails if the
// definition has neither an interval nor a cron text, or an unknown zone.
func (r Recurring) Times(jobID string) (recurrence.Times, error) {
	return recurrence.New(r.rule(jobID))
}

// Words say when the job with the id starts, for people.
func (r Recurring) Words(jobID string) string { return r.rule(jobID).Words() }

func (r Recurring) rule(jobID string) recurrence.Rule {
	return recurrence.Rule{
		Every: r.RecurEvery.Std(), Offset: r.Phase(jobID).Std(), Cron: r.Cron, TimeZone: r.TimeZone,
		StartAt: r.StartAt, EndAt: r.EndAt,
	}
}

func (v *validator) recurring(r Recurring) {
	const mode = "recurring"
	v.bounds(r, mode)
	switch {
	case r.RecurEvery == 0 && r.Cron == "":
		v.at([]string{mode}, "no time is set: give it exactly one of recur_every, at least %s, and cron", MinRecurEvery)
	case r.RecurEvery != 0 && r.Cron != "":
		v.atKey([]string{mode, "cron"}, "recur_every and cron are both set: a recurring job has exactly one")
	case r.Cron != "":
		v.cron(r)
	default:
		v.interval(r)
	}
	if period := r.Period(); period > 0 && r.Jitter >= period {
		v.at([]string{mode, "jitter"}, "%s is not shorter than the time between two starts, %s", r.Jitter, period)
	}
	v.misfire(r)
	if !r.StartAt.IsZero() && !r.EndAt.IsZero() && !r.EndAt.After(r.StartAt) {
		v.at([]string{mode, "end_at"}, "%s is not later than start_at, %s",
			r.EndAt.Format(time.RFC3339Nano), r.StartAt.Format(time.RFC3339Nano))
	}
	v.failures(r)
}

func (v *validator) misfire(r Recurring) {
	at := func(option string) []string { return []string{"recurring", option} }
	switch {
	case r.MaxMissed != 0 && r.Misfire != MisfireAll:
		v.atKey(at("max_missed"), "max_missed goes with misfire all")
	case r.Misfire == MisfireAll && r.Period() > 0 && r.Jitter >= 0 && r.allWindow() < MinCatchupWindow:
		v.at(at("misfire"), "%d is fewer than the starts that %s may hold, the least catch-up window that is possible: raise max_missed",
			r.MissedLimit(), MinCatchupWindow)
	}
	overlap := r.OverlapPolicy()
	switch r.Misfire {
	case MisfireSkip:
		if r.CatchupWindow != 0 {
			v.atKey(at("catchup_window"), "catchup_window does not go with misfire skip, which makes up for nothing")
		}
	case MisfireOnce:
		if slices.Contains([]Overlap{OverlapBufferOne, OverlapCancelOther, OverlapTerminateOther}, overlap) {
			v.at(at("misfire"), "once goes with overlap skip, buffer_all or allow_all: with %s it cannot be told how many missed starts run", overlap)
		}
	case MisfireAll:
		if slices.Contains(Overlaps(), overlap) && overlap != OverlapBufferAll && overlap != OverlapAllowAll {
			v.at(at("misfire"), "all goes with overlap buffer_all or allow_all: with %s missed starts are dropped", overlap)
		}
	}
	if r.Misfire == MisfireOnce && r.GivesWay() && r.Jitter != 0 {
		v.atKey(at("jitter"), fmt.Sprintf("jitter does not go with misfire once and overlap %s, where a start gives way to a later one that is due", overlap))
	}
}

func (v *validator) interval(r Recurring) {
	path := []string{"recurring", "recur_every"}
	if r.RecurEvery >= MinRecurEvery {
		v.wholeSeconds(path, r.RecurEvery)
	}
	if r.TimeZone != "" {
		v.atKey([]string{"recurring", "time_zone"}, "time_zone goes with cron: an interval is the same in every zone")
	}
	if r.Offset == nil {
		return
	}
	path = []string{"recurring", "offset"}
	switch offset := *r.Offset; {
	case offset >= r.RecurEvery:
		v.at(path, "%s is not shorter than recur_every, %s", offset, r.RecurEvery)
	default:
		v.wholeSeconds(path, offset)
	}
}

func (v *validator) wholeSeconds(path []string, d Duration) {
	if d%Duration(time.Second) != 0 {
		v.at(path, "%s is not a whole number of seconds, the resolution of schedules", d)
	}
}

func (v *validator) cron(r Recurring) {
	if _, err := recurrence.ParseCron(r.Cron); err != nil {
		v.at([]string{"recurring", "cron"}, "%s", err)
	}
	if err := checkZone(r.Zone()); err != nil {
		v.at([]string{"recurring", "time_zone"}, "%s", err)
	}
	if r.Offset != nil {
		v.atKey([]string{"recurring", "offset"}, "offset goes with recur_every: cron names its times itself")
	}
}

func checkZone(name string) error {
	if name == "Local" {
		return errors.New(`"Local" is not the name of a time zone: machines differ in it`)
	}
	if _, err := time.LoadLocation(name); err != nil {
		return fmt.Errorf("%.60q is not the name of a time zone, such as Europe/Prague or UTC", name)
	}
	return nil
}
