package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// fakeSource is a source that a test sets.
type fakeSource struct {
	mu      sync.Mutex
	configs []reconcile.Config
	written int // conditions
	reads   int
	err     error
	hints   chan []string
}

func newSourceOf(enabled ...string) *fakeSource {
	p := &fakeSource{hints: make(chan []string)}
	p.set(enabled...)
	return p
}

// set has these configs enabled and no others; those that were there before stay.
func (p *fakeSource) set(enabled ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.configs {
		p.configs[i].Job, p.configs[i].Enabled = nil, false
	}
	for _, id := range enabled {
		i := slices.IndexFunc(p.configs, func(c reconcile.Config) bool { return c.ID == id })
		if i < 0 {
			i = len(p.configs)
			p.configs = append(p.configs, reconcile.Config{ID: id})
		}
		p.configs[i].Job, p.configs[i].Enabled = orchestrator(id), true
	}
}

// change edits a config.
func (p *fakeSource) change(id string, edit func(*reconcile.Config)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.configs {
		if p.configs[i].ID == id {
			edit(&p.configs[i])
		}
	}
}

// remove forgets all configs.
func (p *fakeSource) remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.configs = nil
}

func (p *fakeSource) Configs(context.Context) ([]reconcile.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	return slices.Clone(p.configs), p.err
}

func (p *fakeSource) SetCondition(_ context.Context, id string, condition reconcile.Condition) error {
	p.change(id, func(c *reconcile.Config) {
		c.Condition = condition
		p.written++
	})
	return nil
}

// hint tells of configs that have changed.
func (p *fakeSource) hint(configs ...string) { p.hints <- configs }

func (p *fakeSource) Hints(ctx context.Context, look func(configs ...string)) error {
	for {
		select {
		case configs := <-p.hints:
			look(configs...)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *fakeSource) condition(id string) (condition reconcile.Condition) {
	p.change(id, func(c *reconcile.Config) { condition = c.Condition })
	return condition
}

func orchestrator(config string) *job.Job {
	schedule := job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}
	return &job.Job{
		ID: reconcile.OrchestratorID(config), Type: reconcile.OrchestratorType, Worker: job.WorkerBackend,
		Spec: job.EncodeJSON(map[string]string{"config": config}), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
}

// pipelineJob is a job that the orchestrator of a config has made.
func pipelineJob(config, name string) job.Job {
	j := *orchestrator(config)
	j.ID, j.Type, j.Provider = "do_"+name+"."+config, "Do"+strings.ToUpper(name[:1])+name[1:], job.IntegrationProvider(config)
	return j
}

func ids(configs ...string) []string {
	list := []string{}
	for _, config := range configs {
		list = append(list, reconcile.OrchestratorID(config))
	}
	return list
}

// ledger takes outcomes.
type ledger struct {
	mu       sync.Mutex
	outcomes []reconcile.Outcome
}

func (l *ledger) take(outcome reconcile.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes = append(l.outcomes, outcome)
}

// changes are "action id" of all outcomes, in order.
func (l *ledger) changes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []string{}
	for _, outcome := range l.outcomes {
		for _, change := range outcome.Changes {
			list = append(list, string(change.Action)+" "+change.JobID)
		}
	}
	slices.Sort(list)
	return list
}

func (l *ledger) of(config string) []reconcile.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []reconcile.Outcome
	for _, outcome := range l.outcomes {
		if outcome.Config == config {
			list = append(list, outcome)
		}
	}
	return list
}

// once reconciles once, and gives the changes.
func once(t *testing.T, jobs job.Jobs, source reconcile.Source, dryRun bool) *ledger {
	t.Helper()
	l := &ledger{}
	_, err := reconcile.New(jobs, source, l.take).Once(t.Context(), dryRun)
	require.NoError(t, err)
	return l
}

func TestJobsFollowRegistrations(t *testing.T) {
	t.Parallel()
	jobs, p := jobtest.NewJobs(), newSourceOf("a", "b", "c")
	require.Equal(t, []string{"create orchestrate_integration.a", "create orchestrate_integration.b", "create orchestrate_integration.c"},
		once(t, jobs, p, true).changes(), "a dry run")
	require.Empty(t, jobs.IDs())

	once(t, jobs, p, false)
	require.Equal(t, ids("a", "b", "c"), jobs.IDs())
	for _, j := range jobs.All() {
		require.Equal(t, job.ProviderIntegration, j.Provider)
	}
	require.Equal(t, reconcile.Condition{Scheduled: true, Reason: reconcile.ReasonApplied}, p.condition("b"))
	require.Empty(t, once(t, jobs, p, false).outcomes, "nothing is left to do")

	p.change("b", func(c *reconcile.Config) { c.Job.Options.Description = "changed" })
	require.Equal(t, []string{"update orchestrate_integration.b"}, once(t, jobs, p, false).changes())

	p.set("c")
	require.Equal(t, []string{"delete orchestrate_integration.a", "delete orchestrate_integration.b"}, once(t, jobs, p, false).changes())
	require.Equal(t, ids("c"), jobs.IDs())
	require.Equal(t, reconcile.Condition{Reason: reconcile.ReasonDisabled}, p.condition("b"))
	p.change("c", func(c *reconcile.Config) { c.Job = nil })
	_, err := reconcile.New(jobs, p, nil).Once(t.Context(), false)
	require.EqualError(t, err, "the platform registers no job at all, and finds nothing wrong with configs that have jobs (1, such as c): "+
		"nothing is changed; if the jobs are to go, run starter reconcile --allow-empty")
	p.change("c", func(c *reconcile.Config) { c.Findings = "values.serial: missing" })
	require.Equal(t, []string{"delete orchestrate_integration.c"}, once(t, jobs, p, false).changes(), "though it is enabled")
	require.Equal(t, reconcile.ReasonNoJobs, p.condition("c").Reason)
	p.set("c")
	once(t, jobs, p, false)
	p.remove()
	l := &ledger{}
	reconciler := reconcile.New(jobs, p, l.take)
	_, err = reconciler.Once(t.Context(), false)
	require.EqualError(t, err, "the platform lists no config at all, and jobs of integrations are there (1): nothing is changed; "+
		"if they are to go, run starter reconcile --allow-empty")
	reconciler.AllowEmpty = true
	_, err = reconciler.Once(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []string{"delete orchestrate_integration.c"}, l.changes())
	require.Empty(t, once(t, jobs, p, false).outcomes, "nothing is left to do")
}

// What an orchestrator has made goes after it, and only when it is gone.
func TestADisabledConfigTakesItsJobsWithIt(t *testing.T) {
	t.Parallel()
	p := newSourceOf("stays")
	left := *orchestrator("gone")
	left.Provider = job.ProviderIntegration
	theirs := pipelineJob("gone", "load")
	theirs.ID, theirs.Provider = "do_load.theirs", job.ProviderTOML
	jobs := jobtest.NewJobs(left, pipelineJob("gone", "extract"), pipelineJob("gone", "load"), pipelineJob("stays", "extract"), theirs)

	jobs.Fail(left.ID, errors.New("it does not end"))
	l := once(t, jobs, p, false)
	require.ErrorContains(t, l.of("gone")[0].Err, "it does not end")
	require.Contains(t, jobs.IDs(), "do_extract.gone")

	jobs.Fail(left.ID, nil)
	once(t, jobs, p, false)
	require.Equal(t, append([]string{"do_extract.stays", "do_load.theirs"}, ids("stays")...), jobs.IDs())
	require.Empty(t, once(t, jobs, p, false).outcomes)
}

// One config's invalid registration is its own condition.
func TestAnInvalidRegistrationHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	jobs, p := jobtest.NewJobs(), newSourceOf("a", "b", "c")
	once(t, jobs, p, false)
	before := jobs.All()
	p.set("a", "b", "c", "d", "NOT A NAME")
	p.change("a", func(c *reconcile.Config) { c.Job.Continuous = &job.Continuous{} })
	p.change("b", func(c *reconcile.Config) { c.Job.Worker = "" })
	p.change("c", func(c *reconcile.Config) { c.Job.ID = reconcile.OrchestratorID("a") })

	l := once(t, jobs, p, false)
	require.Equal(t, before, slices.DeleteFunc(jobs.All(), func(j job.Job) bool { return j.ID == reconcile.OrchestratorID("d") }), "they stay as they were")
	for config, want := range map[string]string{
		"a":          "continuous.interval: PT0S is shorter than PT0.01S",
		"b":          "it names no worker type",
		"c":          `the job of config c has the id "orchestrate_integration.a", not orchestrate_integration.c`,
		"NOT A NAME": `integration config "NOT A NAME": a name starts with a-z or 0-9`,
	} {
		condition := p.condition(config)
		require.False(t, condition.Scheduled, config)
		require.Equal(t, reconcile.ReasonInvalid, condition.Reason, config)
		require.Contains(t, condition.Message, want)
		require.NoError(t, l.of(config)[0].Err, "another try cannot help")
	}
	require.True(t, p.condition("d").Scheduled)
	require.Empty(t, once(t, jobs, p, false).outcomes, "they are known")
}

func TestAJobOfAnotherProviderIsNotTouched(t *testing.T) {
	t.Parallel()
	theirs := *orchestrator("a")
	theirs.Provider = job.ProviderTOML
	jobs, p := jobtest.NewJobs(theirs), newSourceOf("a", "b")
	l := once(t, jobs, p, false)
	require.Equal(t, []string{"blocked orchestrate_integration.a", "create orchestrate_integration.b"}, l.changes())
	require.ErrorContains(t, l.of("a")[0].Err, "a job of provider toml has this id")
	require.Equal(t, reconcile.Condition{
		Reason: reconcile.ReasonBlocked, Message: "a job of provider toml has this id: stop or delete that one first",
	}, p.condition("a"))
	require.Equal(t, theirs, jobs.All()[0])
	p.set()
	require.Equal(t, []string{"delete orchestrate_integration.b"}, once(t, jobs, p, false).changes())
	require.Equal(t, theirs, jobs.All()[0])
}

func TestNothingIsRemovedWhenThePlatformCannotBeRead(t *testing.T) {
	t.Parallel()
	jobs, p := jobtest.NewJobs(), newSourceOf("a")
	once(t, jobs, p, false)
	p.set()
	p.err = errors.New("connection refused")
	_, err := reconcile.New(jobs, p, (&ledger{}).take).Once(t.Context(), false)
	require.EqualError(t, err, "the configs of the platform cannot be read: connection refused")
	require.Equal(t, ids("a"), jobs.IDs())
}

// A config that fails is tried ever more rarely, and at once when it is looked at.
func TestAFailingConfigIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs, p, l := jobtest.NewJobs(), newSourceOf("a", "b"), &ledger{}
		jobs.Fail(reconcile.OrchestratorID("a"), errors.New("not now"))
		pass, err := reconcile.New(jobs, p, l.take).Begin(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, pass.Enabled)
		wait := func(d time.Duration) {
			time.Sleep(d) // the clock of the test bubble
			synctest.Wait()
		}
		wait(0)
		require.Equal(t, ids("b"), jobs.IDs(), "it does not wait for the other")
		for want, at := range []time.Duration{0, 1, 2, 4, 8, 16, 32} {
			wait(at * time.Second)
			require.Len(t, l.of("a"), want+1)
		}
		wait(time.Minute)
		require.Len(t, l.of("a"), 8, "at least once a minute")
		require.Equal(t, reconcile.ReasonFailed, p.condition("a").Reason)
		require.Equal(t, 2, p.written, "a condition that is the same is not written again")

		jobs.Fail(reconcile.OrchestratorID("a"), nil)
		p.hint("a")
		wait(0)
		require.Equal(t, ids("a", "b"), jobs.IDs())
		require.True(t, p.condition("a").Scheduled)
		tries := len(l.of("a"))
		wait(time.Hour)
		require.Len(t, l.of("a"), tries, "it is not tried again")
		require.NoError(t, pass.Close())
	})
}

// slowJobs keeps the changes of a job back until it is told, and counts how many changes
// of a job are under way at once.
type slowJobs struct {
	*jobtest.Jobs
	slow    string
	release chan struct{}
	hidden  bool // from lists

	mu       sync.Mutex
	underWay map[string]int
	applied  map[string]int
	twice    []string
}

func (s *slowJobs) Apply(ctx context.Context, set job.Set) (job.Applied, error) {
	key := fmt.Sprint(set.Only)
	s.mu.Lock()
	if s.underWay[key]++; s.underWay[key] > 1 {
		s.twice = append(s.twice, key)
	}
	s.applied[key]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underWay[key]--
	}()
	if slices.Contains(set.Only, s.slow) {
		select {
		case <-s.release:
		case <-ctx.Done():
			return job.Applied{}, ctx.Err()
		}
	}
	return s.Jobs.Apply(ctx, set)
}

func (s *slowJobs) Find(ctx context.Context, filter job.Filter) ([]job.Summary, error) {
	if s.hidden {
		return nil, nil
	}
	return s.Jobs.Find(ctx, filter)
}

func newSlowJobs(slow string) *slowJobs {
	return &slowJobs{
		Jobs: jobtest.NewJobs(), slow: slow, release: make(chan struct{}), underWay: map[string]int{}, applied: map[string]int{},
	}
}

// A config that takes its time holds up no other, and is never worked on twice at once.
func TestAConfigIsWorkedOnOnceAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs, p, l := newSlowJobs(reconcile.OrchestratorID("slow")), newSourceOf("slow", "a"), &ledger{}
		pass, err := reconcile.New(jobs, p, l.take).Begin(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, ids("a"), jobs.IDs())
		for n := range 20 {
			p.set("slow", "a", fmt.Sprintf("n%d", n))
			p.hint("slow", fmt.Sprintf("n%d", n))
			synctest.Wait()
		}
		require.Contains(t, jobs.IDs(), reconcile.OrchestratorID("n19"))
		close(jobs.release)
		synctest.Wait()
		require.NoError(t, pass.Close())
		require.Empty(t, jobs.twice)
		require.Equal(t, 2, jobs.applied["["+jobs.slow+"]"], "once more for all that it was looked at meanwhile")
	})
}

// A config that is disabled and enabled again while its job is being stopped has the
// condition of an enabled one in the end: what was read in between does not know of the
// condition of the disabled one.
func TestAConditionThatWasWrittenLateIsWrittenAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs, p := newSlowJobs(reconcile.OrchestratorID("a")), newSourceOf("a")
		pass, err := reconcile.New(jobs, p, (&ledger{}).take).Begin(t.Context())
		require.NoError(t, err)
		jobs.release <- struct{}{}
		synctest.Wait()
		require.True(t, p.condition("a").Scheduled)

		p.set()
		p.hint("a")
		synctest.Wait()
		p.set("a")
		p.hint("b") // Has everything read.
		synctest.Wait()
		jobs.release <- struct{}{}
		synctest.Wait()
		require.Equal(t, reconcile.ReasonDisabled, p.condition("a").Reason)
		jobs.release <- struct{}{}
		synctest.Wait()
		require.Equal(t, ids("a"), jobs.IDs())
		require.Equal(t, reconcile.ReasonApplied, p.condition("a").Reason)
		require.NoError(t, pass.Close())
	})
}

// A config that is looked at is asked for, also when lists do not show its job yet.
func TestAHintHasTheJobItselfAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs, p := newSlowJobs(""), newSourceOf("a")
		jobs.hidden = true
		pass, err := reconcile.New(jobs, p, (&ledger{}).take).Begin(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, ids("a"), jobs.IDs())
		p.set()
		p.hint("a")
		synctest.Wait()
		require.Empty(t, jobs.IDs())
		require.NoError(t, pass.Close())
	})
}

// A hint that names no config has everything looked at.
func TestAHintMayConcernAllConfigs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs, p := jobtest.NewJobs(), newSourceOf("a")
		pass, err := reconcile.New(jobs, p, (&ledger{}).take).Begin(t.Context())
		require.NoError(t, err)
		p.set("b", "c")
		p.hint()
		synctest.Wait()
		require.Equal(t, ids("b", "c"), jobs.IDs())
		require.NoError(t, pass.Close())
	})
}

// Hints of many configs at once are served by few reads.
func TestManyHintsShareAFullRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs, p := jobtest.NewJobs(), newSourceOf()
		pass, err := reconcile.New(jobs, p, (&ledger{}).take).Begin(t.Context())
		require.NoError(t, err)
		var configs []string
		for n := range 200 {
			configs = append(configs, fmt.Sprintf("c%03d", n))
		}
		p.set(configs...)
		p.hint(configs...)
		synctest.Wait()
		require.NoError(t, pass.Close())
		require.Equal(t, ids(configs...), jobs.IDs())
		require.Equal(t, 2, p.reads)
	})
}
