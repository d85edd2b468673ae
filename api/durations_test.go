package api_test

import (
	"strings"
	"testing"
	"time"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func TestDurationsInJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"PT1M": time.Minute, "P1DT0.5S": 24*time.Hour + 500*time.Millisecond, "60s": time.Minute, "1.5s": 1500 * time.Millisecond} {
		for _, name := range []string{"recurEvery", "recur_every"} {
			var read jobsv1.ApplyJobSetRequest
			require.NoError(t, api.ReadJSON(t.Context(), `{"jobSet": {"jobs": [{}, {
				"id": "a.b\" {", "spec": {"recurEvery": "PT1M", "list": ["P1D", {"jitter": "soon"}], "é": "P1D"},
				"recurring": {"`+name+`" : "`+text+`", "jitter":"PT2S"}}]}}`, &read), text)
			j := read.GetJobSet().GetJobs()[1]
			require.Equal(t, want, j.GetRecurring().GetRecurEvery().AsDuration(), text)
			require.Equal(t, 2*time.Second, j.GetRecurring().GetJitter().AsDuration())
			require.Equal(t, `a.b" {`, j.GetId())
			require.Equal(t, "PT1M", j.GetSpec().AsMap()["recurEvery"])
		}
	}
	for text, want := range map[string]string{
		`{"job": {"recurring": {"recurEvery": "1m"}}}`:   `job.recurring.recurEvery: "1m" is not a duration: write it as PT1M or 60s`,
		`{"job": {"recurring": {"recurEvery": "P1M"}}}`:  `job.recurring.recurEvery: "P1M" is not a duration: write it as PT1M or 60s`,
		`{"job": {"recurring": {"recurEvery": true}}}`:   "unexpected token true",
		`{"job": {"recurring": {"recurEvery": "PT1M"}`:   "unexpected EOF",
		`{"job": {"recurring": {"recurEvery": "PT1M", `:  "unexpected EOF",
		`{"job": {"recurring": {"every": "PT1M"}}}`:      `unknown field "every"`,
		`{"job": ` + strings.Repeat(`{"spec":[`, 150):    "",
		`{"job": {"spec": ` + strings.Repeat("[", 50000): "",
	} {
		err := api.ReadJSON(t.Context(), text, &jobsv1.CreateJobRequest{})
		require.ErrorContains(t, err, want, text[:min(len(text), 100)])
		require.NotContains(t, err.Error(), "\u00a0")
		require.NotContains(t, err.Error(), "proto:")
	}
}

// Every pattern of the contract is told in words.
func TestPatternsAreToldInWords(t *testing.T) {
	t.Parallel()
	found := 0
	var look func(messages protoreflect.MessageDescriptors)
	look = func(messages protoreflect.MessageDescriptors) {
		for n := range messages.Len() {
			for i := range messages.Get(n).Fields().Len() {
				field := messages.Get(n).Fields().Get(i)
				rules, _ := proto.GetExtension(field.Options(), validate.E_Field).(*validate.FieldRules)
				for _, text := range []*validate.StringRules{
					rules.GetString(), rules.GetRepeated().GetItems().GetString(), rules.GetMap().GetKeys().GetString(), rules.GetMap().GetValues().GetString(),
				} {
					if text.GetPattern() != "" {
						found++
						require.NotEmpty(t, api.PatternText(text.GetPattern()), "%s %s", field.FullName(), text.GetPattern())
					}
				}
			}
			look(messages.Get(n).Messages())
		}
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("dendra.jobs.v1", func(file protoreflect.FileDescriptor) bool {
		look(file.Messages())
		return true
	})
	require.Greater(t, found, 40)
}
