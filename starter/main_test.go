package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/job/schema"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

const (
	jobsFile      = "../jobs.toml"
	schemaFile    = "../docs/jobs.schema.json"
	referenceFile = "../docs/job-reference.md"
	errorsFile    = "../docs/errors.md"
	tablesFile    = "../docs/reference.md"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func starter(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	program := cli.Program{Types: activities.Types(), Stdout: &stdout, Stderr: &stderr}
	require.Zero(t, program.Execute(t.Context(), args), stderr.String())
	return stdout.String()
}

// TestGeneratedDocs fails when a job type, an option or a mode has changed and
// the files that are made from them have not.
func TestGeneratedDocs(t *testing.T) {
	t.Parallel()
	for path, command := range map[string][]string{
		schemaFile:    {"schema"},
		referenceFile: {"schema", "--markdown"},
		errorsFile:    {"schema", "--errors"},
		tablesFile:    {"schema", "--reference"},
	} {
		if starter(t, command...) != readFile(t, path) {
			path = strings.TrimPrefix(path, "../")
			t.Errorf("%s is not what the code generates; in the root of the repository: go run ./starter %s > %s",
				path, strings.Join(command, " "), path)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(readFile(t, schemaFile)))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema:///jobs", document))
	schema, err := compiler.Compile("schema:///jobs")
	require.NoError(t, err)
	return schema
}

// TestExamples checks the jobs file and every example of the reference, both as
// the starter and as an editor do.
func TestExamples(t *testing.T) {
	t.Parallel()
	require.True(t, strings.HasPrefix(readFile(t, jobsFile), "#:schema ./docs/jobs.schema.json\n"))
	examples := []string{readFile(t, jobsFile)}
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(readFile(t, referenceFile), -1) {
		examples = append(examples, block[1])
	}
	require.Len(t, examples, 1+len(activities.Types()))
	compiled := compileSchema(t)
	for _, example := range examples {
		_, problems := jobsfile.Read("example.toml", []byte(example), activities.Types())
		require.Empty(t, problems, example)
		values := map[string]any{}
		err := toml.Unmarshal([]byte(example), &values)
		require.NoError(t, err)
		plain, _ := schema.Plain(values)
		require.NoError(t, compiled.Validate(plain), example)
	}
}

// TestEverythingIsDescribed finds keys without a description in their tags.
func TestEverythingIsDescribed(t *testing.T) {
	t.Parallel()
	var document map[string]any
	require.NoError(t, json.Unmarshal([]byte(readFile(t, schemaFile)), &document))
	var walk func(path string, schema map[string]any)
	walk = func(path string, schema map[string]any) {
		if schema["$ref"] != nil {
			return
		}
		if path != "" && !strings.HasSuffix(path, "[]") {
			require.NotEmpty(t, schema["description"], "%s: a tag help", path)
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, property := range properties {
			next, ok := property.(map[string]any)
			require.True(t, ok)
			walk(path+"."+key, next)
		}
		for _, part := range []string{"items", "additionalProperties"} {
			if next, ok := schema[part].(map[string]any); ok && (next["properties"] != nil || next["items"] != nil) {
				walk(path+"[]", next)
			}
		}
	}
	walk("", document)
}

// TestTheTourFailsAfterTheExamples: step 4 of the tour fails as long as nothing is where its
// job counts, and the examples of README come before it.
func TestTheTourFailsAfterTheExamples(t *testing.T) {
	t.Parallel()
	tour := readFile(t, "../docs/tour.md")
	counted := regexp.MustCompile(`(?m)^spec = \{ bucket = "(\w+)"(?:, prefix = "(.*)")? \}$`).FindStringSubmatch(tour)
	require.NotNil(t, counted)
	puts := func(text string) (keys []string) {
		for _, put := range regexp.MustCompile(`dev put \S+ (\S+)`).FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(put[1], counted[1]+"/"+counted[2]) {
				keys = append(keys, put[1])
			}
		}
		return keys
	}
	require.Empty(t, puts(readFile(t, "../README.md")))
	require.NotEmpty(t, puts(tour), "in step 5 it counts something")
}

// TestDocumentedJobsStayTheSame sends the jobs of all documents and files through the Job API,
// and reads the tables that it shows them as.
func TestDocumentedJobsStayTheSame(t *testing.T) {
	t.Parallel()
	types := activities.Types()
	texts := []string{readFile(t, "../jobs.toml"), readFile(t, "../jobs.compose.toml"), readFile(t, "../deploy/kubernetes/base/jobs.toml")}
	for _, name := range []string{referenceFile, "../docs/jobs-toml.md"} {
		for _, example := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(readFile(t, name), -1) {
			texts = append(texts, example[1])
		}
	}
	seen := map[string]bool{}
	for _, text := range texts {
		file, problems := jobsfile.Read("jobs.toml", []byte(text), types)
		if len(problems) > 0 {
			continue // It is a part of a job.
		}
		for _, j := range file.Jobs {
			seen[j.Type] = true
			back, unread := api.Definition(api.JobMessage(j))
			require.Empty(t, unread)
			shown, err := jobsfile.TOML(back)
			require.NoError(t, err)
			again, problems := jobsfile.Read("jobs.toml", []byte(shown), types)
			require.Empty(t, problems, shown)
			require.Equal(t, []job.Job{j}, again.Jobs, shown)
		}
	}
	require.Len(t, seen, len(types), "the reference has an example of each type")
}

// TestDocumentedFiles checks the jobs files that people start from.
func TestDocumentedFiles(t *testing.T) {
	t.Parallel()
	example := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(readFile(t, "../docs/jobs-toml.md"))
	require.NotNil(t, example)
	for name, text := range map[string]string{
		"docs/jobs-toml.md": example[1], "jobs.compose.toml": readFile(t, "../jobs.compose.toml"),
		"deploy/kubernetes/base/jobs.toml": readFile(t, "../deploy/kubernetes/base/jobs.toml"),
	} {
		file, problems := jobsfile.Read(name, []byte(text), activities.Types())
		require.Empty(t, problems)
		require.NotEmpty(t, file.Jobs)
	}
}
