package api

import (
	"context"
	"strings"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// Explain is explain, for tests.
func Explain(ctx context.Context, err error) *connect.Error { return explain(ctx, err) }

// ReadJSON reads a message as the API does.
func ReadJSON(ctx context.Context, text string, message proto.Message) error {
	return newJSONCodec().UnmarshalRead(ctx, strings.NewReader(text), message)
}

// PatternText says what a pattern of the contract allows, "" if nothing says it.
func PatternText(pattern string) string { return patternTexts[pattern] }

// JobStatuses is jobStatuses, for tests.
func JobStatuses() []client.JobStatus { return jobStatuses() }

// EnumOf is enumOf, and WordOf wordOf, for tests.
func EnumOf[E readmodel.Enum](word string) E { return enumOf[E](word) }

// WordOf is wordOf, for tests.
func WordOf[E readmodel.Enum](e E) string { return wordOf[string](e) }

// FieldOf is fieldOf, for tests.
func FieldOf(prefix string, problem job.Problem) string { return fieldOf(prefix, problem) }

// JobsMatching are the rows that a filter of ListJobs lets through, and what package client
// is told of it.
func JobsMatching(filter string, rows []client.JobRow) ([]client.JobRow, client.JobFilter, error) {
	terms, err := parseFilter(filter, jobFields())
	if err != nil {
		return nil, client.JobFilter{}, err
	}
	narrow, possible := jobFilter(terms)
	var matching []client.JobRow
	for _, row := range rows {
		if possible && matchesJob(terms, row) {
			matching = append(matching, row)
		}
	}
	return matching, narrow, nil
}

// RunToken is the page token of a list of all runs with a place of the server.
func RunToken(server string) string {
	return pagesOf[client.RunPlace](&jobsv1.ListRunsRequest{}).write(client.RunPlace{Server: []byte(server)})
}

// RunFilterOf is what package client is told of a filter of ListRuns.
func RunFilterOf(filter string) (client.RunFilter, error) {
	terms, err := parseFilter(filter, runFields())
	narrow, _ := runFilter(terms)
	return narrow, err
}

// Page cuts a page out of ordered names.
func Page(names []string, place string, size int) (page []string, next string) {
	return after(names, func(name string) string { return name }, place, size)
}

// TokenOf writes the page token of a list.
func TokenOf(place string, of proto.Message) string { return pagesOf[string](of).write(place) }

// ReadToken reads it.
func ReadToken(token string, of proto.Message) (string, error) {
	return pagesOf[string](of).read(token)
}

// Merge sets the fields of an update mask.
func Merge(into, from *jobsv1.Job, updateMask string) error {
	paths, err := readMask(updateMask)
	if err != nil {
		return err
	}
	return paths.merge(into, from)
}

// Procedures are the paths of all methods.
func (s *Server) Procedures() []string {
	var all []string
	for spec := range s.connect.Specs() {
		all = append(all, spec.Procedure)
	}
	return all
}
