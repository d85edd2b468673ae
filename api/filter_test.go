package api_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func rows() []client.JobRow {
	return []client.JobRow{
		{ID: "a.one", Type: "A", Mode: job.ModeOneShot, Status: client.JobCompleted, Provider: "api", Owner: "user:ada"},
		{ID: "a.two", Type: "A", Mode: job.ModeRecurring, Status: client.JobFailing, Provider: "toml"},
		{ID: "b.one", Type: `B "x" * \`, Mode: job.ModeQueued, Status: client.JobWaiting, Queue: "q", Provider: "integration.c"},
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string][]string{
		"":                                {"a.one", "a.two", "b.one"},
		"  ":                              {"a.one", "a.two", "b.one"},
		"type = A":                        {"a.one", "a.two"},
		`type="A" AND status=FAILING`:     {"a.two"},
		"type != A":                       {"b.one"},
		"id = a.*":                        {"a.one", "a.two"},
		`id = "a.*" AND id != "a.t*"`:     {"a.one"},
		"mode = one_shot":                 {"a.one"},
		"mode = ONE-SHOT":                 {"a.one"},
		"status = failing":                {"a.two"},
		"provider = integration.*":        {"b.one"},
		"owner = user:ada":                {"a.one"},
		"queue = \"\"":                    {"a.one", "a.two"},
		`type = "B \"x\" \* \\"`:          {"b.one"},
		"id = *":                          {"a.one", "a.two", "b.one"},
		"type = A AND type = B":           nil,
		"tags.site = a AND tags.site = b": nil,
		`id = "' OR '1' = '1"`:            nil,
		"id=a.one AND\n\ttype=A AND mode!=queued": {"a.one"},
	} {
		matching, _, err := api.JobsMatching(filter, rows())
		require.NoError(t, err, filter)
		var ids []string
		for _, row := range matching {
			ids = append(ids, row.ID)
		}
		require.Equal(t, want, ids, filter)
	}
}

func TestFiltersNarrowWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	_, jobs, err := api.JobsMatching(`type = A AND mode = one_shot AND status = FAILING AND tags.site = "x y" AND tags."a b" = * AND owner != u`, nil)
	require.NoError(t, err)
	require.Equal(t, client.JobFilter{Type: "A", Mode: job.ModeOneShot, Status: client.JobFailing, Tags: map[string]string{"site": "x y", "a b": ""}}, jobs)

	runs, err := api.RunFilterOf(`job_id = a.b AND status = HELD_BACK AND start_time >= "2027-01-31T12:00:00Z" AND type = X*`)
	require.NoError(t, err)
	require.Equal(t, client.RunFilter{JobID: "a.b", Status: client.RunHeldBack, Statuses: []client.RunStatus{client.RunHeldBack}, Since: time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)}, runs)
}

func TestBadFilters(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]string{
		"WorkflowType = 'RunJob'":         `unknown field "WorkflowType"`,
		"typ = A":                         `unknown field "typ"; did you mean "type"?`,
		"type":                            `field type takes = or !=, not what is at the end`,
		"type = ":                         `at the end: there is no value`,
		"type > A":                        `field type takes = or !=, not what is at "> A"`,
		"type >= A":                       `field type takes = or !=, not what is at ">= A"`,
		"type = A OR type = B":            `at "OR type = B": AND joins terms, and nothing else does`,
		"type = A) OR (type = B":          `at ") OR (type = B": AND joins terms, and nothing else does`,
		"(type = A)":                      `at "(type = A)": a term is a field, an operator and a value`,
		"type = 'A'":                      `at "'A'": there is no value; a text with other characters`,
		`type = "A`:                       `the text has no quotation mark at its end`,
		`type = "A\n"`:                    `a backslash stands before`,
		"type = *A":                       `a * stands at the end of a value alone`,
		`type = "A*B"`:                    `a * stands at the end of a value alone`,
		"status = GONE":                   `unknown status "gone"`,
		"mode = hourly":                   `unknown mode "hourly"`,
		"tags = x":                        `a tag is written as tags.NAME`,
		"tags. = x":                       `a tag is written as tags.NAME`,
		"tags.site != x":                  `field tags.site takes =, not what is at "!= x"`,
		"tags.site = x*":                  `tag site takes a whole value, or * alone for any`,
		"type = \"a\x00b\"":               `the filter has control characters`,
		"type = A AND":                    `at the end: a term is a field`,
		strings.Repeat("id=a AND ", 40):   `the filter has more than 32 terms`,
		"id=" + strings.Repeat("a", 2000): `the filter has 2003 bytes, more than 2000`,
	} {
		_, _, err := api.JobsMatching(filter, nil)
		require.ErrorContains(t, err, want, filter)
	}
	for filter, want := range map[string]string{
		"start_time >= yesterday":           "takes a time such as",
		"start_time = 2027-01-31T12:00:00Z": "field start_time takes >=",
		"start_time >= 2027-01-31T12:00:00Z AND start_time >= 2027-01-31T12:00:00Z": "the filter names start_time twice",
	} {
		_, err := api.RunFilterOf(filter)
		require.ErrorContains(t, err, want, filter)
	}
}

// FuzzFilter looks for texts that end the parser otherwise than by an answer, and for rows
// that a filter and its opposite both let through.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"type = A", `id != "a\"*" AND tags.x = *`, "tags.\"", "=", `"`, "AND", "id=*", "mode=one-shot"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		matching, _, err := api.JobsMatching(text, rows())
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if strings.Count(text, "=") == 1 && strings.Contains(text, "!=") && !strings.Contains(text, " AND ") {
			opposite, _, err := api.JobsMatching(strings.Replace(text, "!=", "=", 1), rows())
			require.NoError(t, err)
			require.Len(t, slices.Concat(matching, opposite), len(rows()))
		}
	})
}

func TestPageTokens(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	var all []string
	place, pages := "", 0
	for {
		page, next := api.Page(names, place, 2)
		all = append(all, page...)
		if pages++; next == "" {
			break
		}
		place = next
	}
	require.Equal(t, names, all)
	require.Equal(t, 3, pages)
	_, next := api.Page(names[:2], "", 2)
	require.Empty(t, next, "a full last page")
	page, _ := api.Page(names, "bb", 2)
	require.Equal(t, []string{"c", "d"}, page, "the place itself is gone")

	request := &jobsv1.ListJobsRequest{Filter: "type = A", PageSize: 2}
	token := api.TokenOf("b", request)
	place, err := api.ReadToken(token, &jobsv1.ListJobsRequest{Filter: "type = A", PageSize: 3, PageToken: token})
	require.NoError(t, err)
	require.Equal(t, "b", place)
	for _, bad := range []string{token + "x", "!", "e30", base64.RawURLEncoding.EncodeToString([]byte(`{"list":"","place":"x"}`)), strings.Repeat("A", 10_000)} {
		_, err = api.ReadToken(bad, request)
		requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_PAGE_TOKEN)
	}
	for _, other := range []proto.Message{
		&jobsv1.ListJobsRequest{Filter: "type = B"}, &jobsv1.ListRunsRequest{Filter: "type = A"}, &jobsv1.ListJobsRequest{},
		&jobsv1.ListJobsRequest{Filter: "type = A", LeaveOutEnded: true},
	} {
		_, err = api.ReadToken(token, other)
		requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_PAGE_TOKEN)
	}
}

// requireError requires an error of the API with the code and the reason.
func requireError(t *testing.T, err error, code connect.Code, reason jobsv1.ErrorReason) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, connect.CodeOf(err), "%v", err)
	found, _ := api.InfoOf(err)
	require.Equal(t, reason, found, "%v", err)
}

func short(reason jobsv1.ErrorReason) string {
	return strings.TrimPrefix(fmt.Sprint(reason), "ERROR_REASON_")
}
