package cli_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/workers"
)

// startBuild runs a versioned worker of the test's job types.
func startBuild(t *testing.T, st *stacktest.Stack, build string) (stop func()) {
	t.Helper()
	types := testTypes()[:2]
	return workertest.Run(t, st, workers.Config{Worker: types[0].Worker, Types: types, Service: "build-" + build, Deployment: "dendra-jobs", BuildID: build})
}

// TestDeploy upgrades by the command line, with each mistake on the way.
func TestDeploy(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := console{address: st.Temporal, namespace: st.Namespace}
	fails := func(want string, args ...string) {
		t.Helper()
		r := c.run(t.Context(), append([]string{"deploy"}, args...)...)
		require.NotZero(t, r.code, args)
		require.Regexp(t, want, r.stderr)
	}
	shows := func(want string) {
		t.Helper()
		stacktest.WaitFor(t, "status "+want, func() (bool, error) {
			return regexp.MustCompile(want).MatchString(c.run(t.Context(), "deploy", "status").stdout), nil
		})
	}
	fails(`^starter: no versioned worker of deployment dendra-jobs has come yet\n$`, "status")
	stopOne := startBuild(t, st, "one")
	shows(`one +current +1 +0 +0 .* no: it is the current build`)
	fails(`deployment dendra-jobs has no build two: it has one`, "promote", "two")
	fails(`no other build of deployment dendra-jobs was the current one`, "rollback")
	fails(`build one is the current build of deployment dendra-jobs`, "ramp", "one")

	stopTwo := startBuild(t, st, "two")
	shows(`two +inactive +1 +0 +0`)
	require.Equal(t, "Build two: it takes 25 % of the new runs.\n", c.ok(t, "deploy", "ramp", "two", "--percentage", "25"))
	shows(`two +ramping, 25 % +1 .* no: it takes a part of the new runs`)
	require.Equal(t, "Build one takes all new runs.\n", c.ok(t, "deploy", "rollback"))
	fails(`build two takes no part of the new runs`, "ramp", "two", "--percentage", "0")
	fails(`percentage`, "ramp", "two", "--percentage", "101")
	require.Equal(t, "Build two takes all new runs.\n", c.ok(t, "deploy", "promote", "two", "--reason", "by test"))
	require.Contains(t, c.ok(t, "deploy", "rollback"), "Build one takes all new runs")
	require.Contains(t, c.ok(t, "deploy", "promote", "two"), "Build two takes all new runs")

	stopTwo()
	c.ok(t, "run", "--type", "TakeSteps", "--key", "waits", "--spec", `{"steps": 1}`, "--detach")
	shows(`Build two takes new runs and has no live worker: start one, or promote another build`)
	stacktest.WaitFor(t, "what doctor finds", func() (bool, error) {
		told := c.run(t.Context(), "doctor", "--only", "temporal,workers").stdout
		if !regexp.MustCompile(`builds.*build two takes new runs and has no live worker`).MatchString(told) {
			return false, errors.New(told)
		}
		return true, nil
	})
	stopTwo = startBuild(t, st, "two")
	stacktest.WaitFor(t, "the end of the run", func() (bool, error) {
		return regexp.MustCompile(`waits.*completed`).MatchString(c.run(t.Context(), "runs", "list").stdout), nil
	})
	require.Equal(t, "0 workflows moved to build two.\n", c.ok(t, "deploy", "move", "one", "two", "--yes"))
	fails(`build two is both where from and where to`, "move", "two", "two", "--yes")
	fails(`there is no terminal to ask on: add --yes to move it`, "move", "one", "two")
	require.Equal(t, "0 builds removed.\n", c.ok(t, "deploy", "prune"))
	stopOne()
	stopTwo()

	require.Contains(t, c.ok(t, "replay"), contract.RunJobType)
	refused := console{address: "127.0.0.1:1"}.run(t.Context(), "replay")
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "cannot be reached")
}

// deploySteps have a deployment for each side, with two builds.
func deploySteps() []step {
	const of = " --deployment NAME"
	start := func(build string) func(*conformance, *side) {
		return func(c *conformance, s *side) {
			workertest.StartBuild(c.T, c.st.Dial(c.T), s.values["NAME"], build)
		}
	}
	return []step{
		do(1, "no versioned worker", "deploy status"+of),
		// One after the other: they are listed by their ages.
		prepared(start("one"), ask(0, "one", "deploy status"+of)),
		prepared(start("two"), ask(0, "two", "deploy status"+of)),
		do(0, "Build one takes all new runs|current", "deploy promote one"+of),
		do(1, "no build three", "deploy promote three"+of),
		do(0, "it takes 50 % of the new runs|percentage", "deploy ramp two --percentage 50"+of),
		do(0, "Build one takes all new runs|current", "deploy rollback"+of),
		do(1, "add --yes to move it", "deploy move one two"+of),
		do(0, "0 workflows moved|{}", "deploy move one two --yes"+of),
		do(0, "0 builds removed|builds", "deploy prune"+of),
	}
}
