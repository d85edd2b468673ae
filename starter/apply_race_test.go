package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

// TestTwoAppliesAtOnce has two files for the same jobs applied at the same time,
// first where nothing stands, then over each other.
func TestTwoAppliesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t) // Not in parallel: a race needs processors.
	for round := range stacktest.Size(1, 2) {
		rivals(s, 2*round)
	}
}

// TestTheSameFileTwiceAtOnce is no conflict: both succeed, and nothing is started
// twice, whether it is new or changed.
func TestTheSameFileTwiceAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t) // Not in parallel: a race needs processors.
	for revision := range 2 {
		set := declaredJobs{recurring: 20, continuous: 6, oneShot: 12, queued: 8, revision: revision}
		file := set.file(t)
		first, second := s.start("apply", "-f", file, "--yes"), s.start("apply", "-f", file, "--yes")
		for _, p := range []*stacktest.Process{first, second} {
			if code := p.Wait(); strings.Contains(p.Output(), "no worker answers within") {
				t.Log("the machine is too busy: some changes are left to the next apply")
				s.must(0, "apply", "-f", file, "--yes")
			} else {
				require.Zero(t, code, p.Output())
			}
			require.NotContains(t, p.Output(), "someone else")
		}
		once := set.onces()
		stacktest.WaitFor(t, "a run of each job that runs once", func() (bool, error) {
			return slices.Min(s.runs(once)) > revision, nil
		})
		s.must(0, "plan", "-f", file)
		require.Equal(t, slices.Repeat([]int{revision + 1}, len(once)), s.runs(once))
		s.must(0, "drift")
	}
}

// lost are what the slower of two applies may say.
var lost = regexp.MustCompile(`^(\[\d+/\d+\] (created|updated) \S+` +
	`|\[\d+/\d+\] failed to (create|update) (\S+): (schedule job/\S+|job \S+) was (changed|removed) by someone else meanwhile: [a-z ]+` +
	`|\[\d+/\d+\] failed to (create|update) (\S+): job \S+ runs with another definition now; try again when that has ended` +
	`|\[\d+/\d+\] failed to (create|update) (\S+): .*job \S+: it (waits in it|runs now) with another spec.*` +
	`|\[\d+/\d+\] failed to (create|update) (\S+): .*: no worker answers within 15s: is a worker of its type running\?( \(it may still be done when one answers\))?` +
	`|starter: \d+ of \d+ changes failed` +
	`|starter: \d+ jobs? (is|are) blocked and unchanged)$`)

func rivals(s *site, revision int) {
	sets := []declaredJobs{
		{recurring: 20, continuous: 10, oneShot: 10, revision: revision},
		{recurring: 20, continuous: 10, oneShot: 10, revision: revision + 1},
	}
	var files []string
	var running []*stacktest.Process
	for _, set := range sets {
		files = append(files, set.file(s.T))
	}
	for _, file := range files {
		running = append(running, s.start("apply", "-f", file, "--yes"))
	}
	for _, p := range running {
		code := p.Wait()
		require.Contains(s, []int{0, 1}, code)
		for line := range strings.Lines(p.Output()) {
			if strings.HasPrefix(line, "[") || strings.HasPrefix(line, "starter: ") {
				require.Regexp(s, lost, strings.TrimSuffix(line, "\n"))
			}
		}
		s.Logf("exit code %d, %d changes failed", code, strings.Count(p.Output(), "] failed to "))
	}
	s.wholeDefinitions(files)

	// Whoever applies last has the say, once the runs of the other have ended.
	stacktest.WaitFor(s, "an apply in peace", func() (bool, error) {
		return s.start("apply", "-f", files[0], "--yes").Wait() == 0, nil
	})
	s.must(0, "plan", "-f", files[0])
	s.wholeDefinitions(files[:1])
	s.must(0, "drift")
}

// wholeDefinitions checks that everything that stands for a job is as one of the
// files declares it, in all of its parts.
func (s *site) wholeDefinitions(files []string) {
	s.Helper()
	allowed := map[string][]string{}
	for _, path := range files {
		file, problems, err := jobsfile.Load(path, activities.Types())
		require.NoError(s, err)
		require.Empty(s, problems)
		for _, j := range file.Jobs {
			allowed[j.ID] = append(allowed[j.ID], whole(s, j))
		}
	}
	for id, texts := range allowed {
		stood := s.stands(id)
		require.Contains(s, texts, stood)
	}
}

// whole is all that depends on a definition.
func whole(s *site, j job.Job) string {
	s.Helper()
	hash, err := j.DefinitionHash()
	require.NoError(s, err)
	every := ""
	if j.Recurring != nil {
		every = j.Recurring.RecurEvery.Std().String()
	}
	return fmt.Sprintf("%s hash %s owner %s every %s", job.EncodeJSON(j), hash, j.Options.Owner, every)
}

// stands is the same of what stands.
func (s *site) stands(id string) string {
	s.Helper()
	var j job.Job
	attributes := func(a *commonpb.SearchAttributes) string {
		var hash, owner string
		decode(s, a.GetIndexedFields()["JobDefinitionHash"], &hash)
		decode(s, a.GetIndexedFields()["JobOwner"], &owner)
		return fmt.Sprintf("hash %s owner %s", hash, owner)
	}
	if !strings.HasPrefix(id, "extract_hobo_time_frame.") {
		answer, err := s.temporal.DescribeWorkflowExecution(s.Context(), "job/"+id, "")
		require.NoError(s, err)
		info := answer.GetWorkflowExecutionInfo()
		decode(s, info.GetMemo().GetFields()["job"], &j)
		return fmt.Sprintf("%s %s every ", job.EncodeJSON(j), attributes(info.GetSearchAttributes()))
	}
	answer, err := s.temporal.WorkflowService().DescribeSchedule(s.Context(), &workflowservice.DescribeScheduleRequest{
		Namespace: s.stack.Namespace, ScheduleId: "job/" + id,
	})
	require.NoError(s, err)
	start := answer.GetSchedule().GetAction().GetStartWorkflow()
	var input struct{ Job job.Job }
	decode(s, start.GetInput().GetPayloads()[0], &input)
	decode(s, start.GetMemo().GetFields()["job"], &j)
	require.Equal(s, input.Job, j)
	require.Equal(s, attributes(answer.GetSearchAttributes()), attributes(start.GetSearchAttributes()))
	every := answer.GetSchedule().GetSpec().GetInterval()[0].GetInterval().AsDuration().String()
	return fmt.Sprintf("%s %s every %s", job.EncodeJSON(j), attributes(answer.GetSearchAttributes()), every)
}

func decode(s *site, payload *commonpb.Payload, into any) {
	s.Helper()
	require.NotNil(s, payload)
	require.NoError(s, converter.GetDefaultDataConverter().FromPayload(payload, into))
}
