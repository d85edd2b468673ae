package page_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/page"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// A stack is read line by line.
func TestAttributesOfLogs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"one": "one", "two words": `"two words"`, "goroutine 1:\n\tmain.go:7": "goroutine 1:\n\tmain.go:7"} {
		require.Equal(t, want, page.Attribute(structpb.NewStringValue(text)))
	}
}

func TestProgressHasOneCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		progress *jobsv1.RunProgress
		want     string
	}{
		{&jobsv1.RunProgress{Done: 3}, "3 done"},
		{&jobsv1.RunProgress{Done: 3, Message: "points"}, "3 done points"},
		{&jobsv1.RunProgress{Done: 728, Message: "728 messages"}, "728 messages"},
	} {
		require.Equal(t, c.want, page.DoneText(c.progress))
	}
}
