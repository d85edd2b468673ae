package openapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/openapi"
)

const documentFile = "../../docs/jobs.openapi.json"

func TestTheDocumentIsThatOfTheContract(t *testing.T) {
	t.Parallel()
	made, err := openapi.Jobs(os.DirFS("../../proto"))
	require.NoError(t, err)
	committed, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	require.True(t, bytes.Equal(committed, made), "%s is out of date: make generate", documentFile)
}

// document reads the parts of the document that tests look at.
func document(t *testing.T) (paths map[string]map[string]any, schemas map[string]map[string]any) {
	t.Helper()
	text, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	var d struct {
		OpenAPI    string
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]map[string]any }
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, "3.1.0", d.OpenAPI)
	return d.Paths, d.Components.Schemas
}

func TestMethods(t *testing.T) {
	t.Parallel()
	paths, schemas := document(t)
	contracts, err := filepath.Glob("../../proto/dendra/jobs/v1/*_service.proto")
	require.NoError(t, err)
	var written []string
	for _, contract := range contracts {
		text, err := os.ReadFile(contract)
		require.NoError(t, err)
		service := ""
		for _, found := range regexp.MustCompile(`(?m)^service (\w+)|^  rpc (\w+)\(\w+\) returns \(\w+\)`).FindAllStringSubmatch(string(text), -1) {
			if service = cmp.Or(found[1], service); found[2] != "" {
				written = append(written, "/dendra.jobs.v1."+service+"/"+found[2])
			}
		}
	}
	require.ElementsMatch(t, written, slices.Collect(maps.Keys(paths)))
	require.Contains(t, paths["/dendra.jobs.v1.JobService/GetJob"], "get")
	require.Contains(t, paths["/dendra.jobs.v1.JobService/GetJob"], "post")
	require.NotContains(t, paths["/dendra.jobs.v1.JobService/CreateJob"], "get")
	require.NotContains(t, paths, "/dendra.jobs.v1.RunService/WatchRun")
	require.Equal(t, "A pause by people is in state.", schemas["Job"]["properties"].(map[string]any)["paused"].(map[string]any)["description"].(string)[len("The definition keeps the job from running. "):])
}

// TestOperations: generated clients know where to call, with which token, and what errors are.
func TestOperations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	type operation struct {
		Summary   string
		Responses map[string]any
	}
	var d struct {
		Servers    []struct{ URL string }
		Security   []map[string]any
		Paths      map[string]map[string]operation
		Components struct {
			SecuritySchemes map[string]struct{ Scheme string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Servers)
	require.Contains(t, d.Security, map[string]any{"bearer": []any{}})
	require.Equal(t, "bearer", d.Components.SecuritySchemes["bearer"].Scheme)
	require.NotEmpty(t, d.Paths)
	for path, operations := range d.Paths {
		for verb, o := range operations {
			require.Regexp(t, `^[A-Z].*\.$`, o.Summary, "%s %s", verb, path)
			for _, status := range []string{"200", "4XX", "5XX"} {
				require.Contains(t, o.Responses, status, "%s %s", verb, path)
			}
		}
	}
}

// TestSchemas checks values as other programs do with the document.
func TestSchemas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, compiler.AddResource("doc.json", whole))
	for _, c := range []struct {
		message, value string
		valid          bool
	}{
		{"CreateJobRequest", `{"job":{"id":"a.b","recurring":{"cron":"0 6 * * *","jitter":"1.5s","overlap":"OVERLAP_POLICY_SKIP"}},"requestId":"0b9f4a52-6f0f-4f7a-9a55-7a8c1d2e3f40"}`, true},
		{"CreateJobRequest", `{}`, false},
		{"CreateJobRequest", `{"job":{"id":"A"}}`, false},
		{"CreateJobRequest", `{"job":{"id":"a.b","recurring":{"jitter":"PT1M30S"}}}`, true},
		{"CreateJobRequest", `{"job":{"id":"a.b","recurring":{"jitter":"1m"}}}`, false},
		{"CreateJobRequest", `{"job":{"id":"a.b","recurring":{"overlap":"SOMETIMES"}}}`, false},
		{"CreateJobRequest", `{"job":{"id":"a.b","recurring":{"maxMissed":1001}}}`, false},
		{"GetJobRequest", `{"id":""}`, false},
		{"DropQuarantineItemsRequest", `{"ids":["7",8]}`, true},
		{"DropQuarantineItemsRequest", `{"ids":[0]}`, false},
		{"DropQuarantineItemsRequest", `{"ids":["7"],"filter":{}}`, false},
		{"DropQuarantineItemsRequest", `{}`, false},
	} {
		schema, err := compiler.Compile("doc.json#/components/schemas/" + c.message)
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(c.value))
		require.NoError(t, err)
		require.Equal(t, c.valid, schema.Validate(value) == nil, "%s %s", c.message, c.value)
	}
}

func TestComments(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{
		"a.v1.M":       "M is a message. It has two lines.",
		"a.v1.M.text":  "A text.",
		"a.v1.M.list":  "A list.",
		"a.v1.M.inner": "One of them.",
		"a.v1.E.E_ONE": "One.",
		"a.v1.S.Get":   "Get gets.",
	}, openapi.Comments(`
// Not of a name.

package a.v1;

// M is a message.
// It has two lines.
message M {
  // A text.
  string text = 1 [(buf.validate.field).string = {
    // Of no name.
    pattern: "^[{]+$"
  }];
  oneof mode {
    // One of them.
    Inner inner = 3;
  }
  // A list.
  repeated map.Of list = 2;
}
enum E {
  E_ZERO = 0;
  // One.
  E_ONE = 1;
}
service S {
  // Get gets.
  rpc Get(M) returns (M) {
    option idempotency_level = NO_SIDE_EFFECTS;
  }
}
`))
}
