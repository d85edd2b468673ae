package jobtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/dendrascience/dendra-jobs/job"
)

// FailureOf is the failure in an error, which has to be one.
func FailureOf(t testing.TB, err error) *job.Failure {
	t.Helper()
	var failure *job.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("no failure of a job: %v", err)
	}
	return failure
}

// RequireFailure requires the class and the verdict of a failure, and that its text is one
// line which holds the given parts.
func RequireFailure(t testing.TB, err error, class string, final bool, parts ...string) {
	t.Helper()
	failure, text := FailureOf(t, err), err.Error()
	if failure.Class != class || failure.Kind.Final() != final {
		t.Fatalf("class %s, final: %t; want %s, %t: %s", failure.Class, failure.Kind.Final(), class, final, text)
	}
	if strings.Contains(text, "\n") {
		t.Fatalf("more than one line: %s", text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Fatalf("%q is not in: %s", part, text)
		}
	}
}
