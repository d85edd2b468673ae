package schema_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

type named struct {
	Station string `json:"station"`
}

type spec struct {
	named
	Bucket  string            `json:"bucket" minLength:"1" help:"Where it goes, by name."`
	Color   string            `json:"color,omitempty" enum:"red,green" default:"red"`
	Width   int               `json:"width,omitempty" minimum:"1" maximum:"4096"`
	Level   uint8             `json:"level,omitempty"`
	Ratio   float64           `json:"ratio,omitempty" exclusiveMinimum:"0"`
	Upright bool              `json:"upright,omitempty"`
	Every   job.Duration      `json:"every,omitempty"`
	Token   job.SecretRef     `json:"token,omitempty"`
	Owner   job.Owner         `json:"owner,omitzero"`
	Since   time.Time         `json:"since,omitzero"`
	Names   []string          `json:"names,omitempty" pattern:"^[a-z]+$" minItems:"1" uniqueItems:"true"`
	Labels  map[string]string `json:"labels,omitempty"`
	Sizes   []size            `json:"sizes,omitempty"`
	Address netip.Addr        `json:"address,omitzero"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Free    any               `json:"free,omitempty"`
	Inner   *spec2            `json:"inner,omitempty"`
	Skipped chan int          `json:"-"`
}

type size struct {
	Name  string `json:"name"`
	Pixel int    `json:"pixel"`
}

// A type of the same name as one in another place must not take its place.
type spec2 = struct {
	Spec size `json:"spec"`
}

func schemaOf[T any](t *testing.T) *schema.Schema {
	t.Helper()
	schema, err := schema.For(reflect.TypeFor[T]())
	require.NoError(t, err)
	return schema
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	return value
}

func messages(problems []job.Problem) []string {
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.String()
	}
	return texts
}

const good = `{"station": "a", "bucket": "b", "color": "green", "width": 3, "level": 255, "ratio": 0.5, "upright": true,
	"every": "PT1M", "token": "secret://hobo", "owner": "user:ann", "since": "2026-01-31T12:00:00Z", "names": ["x"],
	"labels": {"a": "b"}, "sizes": [{"name": "s", "pixel": 1}], "address": "127.0.0.1", "raw": {"x": [1]},
	"free": [1, {"a": null}], "inner": {"spec": {"name": "n", "pixel": 2}}}`

// Each command and each reading of a jobs file asks for the schemas of all job types.
func TestASchemaOfAGoTypeIsMadeOnce(t *testing.T) {
	t.Parallel()
	kind := reflect.TypeFor[struct {
		Name string `json:"name"`
	}]()
	made := make([]*schema.Schema, 8)
	var all sync.WaitGroup
	for n := range made {
		all.Go(func() { made[n], _ = schema.For(kind) })
	}
	all.Wait()
	require.NotNil(t, made[0])
	for _, other := range made {
		require.Same(t, made[0], other)
	}
	partial, err := schema.ForPartial(kind)
	require.NoError(t, err)
	require.NotEqual(t, made[0].JSON(), partial.JSON())
}

func TestCheckAcceptsWhatDecodes(t *testing.T) {
	t.Parallel()
	require.Empty(t, schemaOf[spec](t).Check(decode(t, good)))
	var into spec
	require.NoError(t, job.DecodeSpec(json.RawMessage(good), &into))
	for _, every := range []string{`"15m"`, `"900"`, `900`, `0.5`} {
		require.Empty(t, schemaOf[spec](t).Check(decode(t, `{"station":"a","bucket":"b","every":`+every+`}`)), every)
	}
}

func TestCheckReports(t *testing.T) {
	t.Parallel()
	const base = `"station":"a","bucket":"b"`
	for text, want := range map[string][]string{
		`{}`:                                                {`key "bucket" is missing`, `key "station" is missing`},
		`[]`:                                                {`a list is not a table`},
		`null`:                                              {`null is not a table`},
		`{"station":"a","bucket":42}`:                       {`bucket: 42 is not a string`},
		`{"station":"a","bucket":""}`:                       {`bucket: the text is empty`},
		`{"station":"a","bucket":{"x":1}}`:                  {`bucket: a table is not a string`},
		`{` + base + `,"colour":"red"}`:                     {`colour: unknown key "colour"; did you mean "color"?`},
		`{` + base + `,"zzz":1,"Width":2}`:                  {`Width: unknown key "Width"; did you mean "width"?`, `zzz: unknown key "zzz"`},
		`{` + base + `,"color":"blue"}`:                     {`color: "blue" is not one of red, green`},
		`{` + base + `,"width":0}`:                          {`width: 0 is less than 1`},
		`{` + base + `,"width":5000}`:                       {`width: 5000 is more than 4096`},
		`{` + base + `,"width":1.5}`:                        {`width: 1.5 is not a whole number`},
		`{` + base + `,"level":256}`:                        {`level: 256 is more than 255`},
		`{` + base + `,"ratio":0}`:                          {`ratio: 0 is not more than 0`},
		`{` + base + `,"ratio":"x"}`:                        {`ratio: "x" is not a number`},
		`{` + base + `,"upright":"yes"}`:                    {`upright: "yes" is not true or false`},
		`{` + base + `,"every":"P1M"}`:                      {`every: "P1M" counts years or months, which have no fixed length: write days or weeks, as in P30D`},
		`{` + base + `,"every":-1}`:                         {`every: a duration of -1 seconds is negative`},
		`{` + base + `,"every":true}`:                       {`every: true is not a duration: write it as PT15M, 15m or 900 (seconds)`},
		`{` + base + `,"token":"hunter2"}`:                  {`token: a secret is named, never written: secret://NAME`},
		`{` + base + `,"token":1234}`:                       {`token: a secret is named, never written: secret://NAME`},
		`{` + base + `,"owner":"ann"}`:                      {`owner: "ann" is not an owner: write organization:NAME or user:NAME`},
		`{` + base + `,"since":"yesterday"}`:                {`since: "yesterday" is not a date and time with an offset, such as 2026-01-31T12:00:00Z`},
		`{` + base + `,"names":[]}`:                         {`names: the list is empty`},
		`{` + base + `,"names":["a","b","a"]}`:              {`names: items 1 and 3 of the list are the same`},
		`{` + base + `,"names":["a","B",3]}`:                {`names.1: "B" does not match the pattern ^[a-z]+$`, `names.2: 3 is not a string`},
		`{` + base + `,"labels":{"a":1}}`:                   {`labels.a: 1 is not a string`},
		`{` + base + `,"sizes":[{"nam":"x"}]}`:              {`sizes.0: key "name" is missing`, `sizes.0: key "pixel" is missing`, `sizes.0.nam: unknown key "nam"; did you mean "name"?`},
		`{` + base + `,"inner":{"spec":{}}}`:                {`inner.spec: key "name" is missing`, `inner.spec: key "pixel" is missing`},
		`{"station":"a","bucket":1,"width":"","color":"x"}`: {`bucket: 1 is not a string`, `color: "x" is not one of red, green`, `width: "" is not a whole number`},
	} {
		require.Equal(t, want, messages(schemaOf[spec](t).Check(decode(t, text))), text)
	}
}

func TestCheckMarksUnknownKeys(t *testing.T) {
	t.Parallel()
	problems := schemaOf[size](t).Check(map[string]any{"name": "a", "pixels": int64(1)})
	require.Equal(t, []job.Problem{
		{Message: `key "pixel" is missing`},
		{Path: []string{"pixels"}, AtKey: true, Message: `unknown key "pixels"; did you mean "pixel"?`},
	}, problems)
}

func TestCheckClipsLongValues(t *testing.T) {
	t.Parallel()
	problems := schemaOf[spec](t).Check(map[string]any{
		"station": "a", "bucket": "b", "color": strings.Repeat("é", 5000), strings.Repeat("k", 5000): int64(1),
	})
	require.Len(t, problems, 2)
	for _, problem := range problems {
		require.Less(t, len(problem.Message), 250)
	}
}

func TestCheckOfTOMLValues(t *testing.T) {
	t.Parallel()
	schema := schemaOf[spec](t)
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	require.Empty(t, schema.Check(map[string]any{
		"station": "a", "bucket": "b", "since": at, "width": int64(5),
		"sizes": []any{map[string]any{"name": "s", "pixel": int64(1)}},
	}))
	require.Equal(t, []string{
		`free.0: NaN is not a number that JSON can hold`,
		`free.1: a value of type complex128 has no place in JSON`,
		`ratio: +Inf is not a number that JSON can hold`,
		`since: "2026-01-31" is not a date and time with an offset, such as 2026-01-31T12:00:00Z`,
	}, messages(schema.Check(map[string]any{
		"station": "a", "bucket": "b", "ratio": math.Inf(1), "free": []any{math.NaN(), complex(1, 2)},
		"since": toml.LocalDate{Year: 2026, Month: 1, Day: 31},
	})))
}

func TestCheckOfHugeNumbers(t *testing.T) {
	t.Parallel()
	decoder := json.NewDecoder(strings.NewReader(`{"free": 1e999999999, "width": 99999999999999999999, "station":"a", "bucket":"b"}`))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	require.Equal(t, []string{
		`free: 1e999999999 is too large a number`,
		`width: 100000000000000000000 is more than 4096`,
	}, messages(schemaOf[spec](t).Check(value)))
}

func TestForPartialRequiresNothing(t *testing.T) {
	t.Parallel()
	schema, err := schema.ForPartial(reflect.TypeFor[job.Options]())
	require.NoError(t, err)
	require.Empty(t, schema.Check(map[string]any{}))
	require.Empty(t, schema.Check(map[string]any{"retry_backoff": map[string]any{"max": "PT1H"}}))
	require.Equal(t, []string{
		`paused: "no" is not true or false`,
		`retry_backoff.maximum: unknown key "maximum"; did you mean "max"?`,
		`run_time: unknown key "run_time"; did you mean "run_timeout"?`,
		`tags.team: 1 is not a string`,
	}, messages(schema.Check(map[string]any{
		"retry_backoff": map[string]any{"maximum": "PT1H"}, "run_time": "PT1H", "paused": "no",
		"tags": map[string]any{"team": int64(1)},
	})))
	require.Equal(t, "object", schema.Type("tags"))
	require.Equal(t, "string", schema.Type("description"))
	require.Empty(t, schema.Type("run_timeout"))
	require.Contains(t, schema.Keys(), "max_retry_count")
}

func TestForModes(t *testing.T) {
	t.Parallel()
	schedule := reflect.TypeFor[job.Trigger]()
	for i := range schedule.NumField() {
		_, err := schema.For(schedule.Field(i).Type)
		require.NoError(t, err)
	}
	require.Empty(t, schemaOf[job.OneShot](t).Check(map[string]any{}))
	require.Equal(t, []string{`key "interval" is missing`}, messages(schemaOf[job.Continuous](t).Check(map[string]any{})))
}

func TestJSONIsStableAndSelfContained(t *testing.T) {
	t.Parallel()
	text := schemaOf[spec](t).JSON()
	require.Equal(t, string(text), string(schemaOf[spec](t).JSON()))
	require.NotContains(t, string(text), "$ref")
	require.NotContains(t, string(text), "$id")

	var document struct {
		Schema     string         `json:"$schema"`
		Required   []string       `json:"required"`
		Properties map[string]any `json:"properties"`
		Additional bool           `json:"additionalProperties"`
	}
	require.NoError(t, json.Unmarshal(text, &document))
	property := func(key string) map[string]any {
		object, ok := document.Properties[key].(map[string]any)
		require.True(t, ok, "%T", document.Properties[key])
		return object
	}
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", document.Schema)
	require.Equal(t, []string{"station", "bucket"}, document.Required)
	require.False(t, document.Additional)
	require.Equal(t, "Where it goes, by name.", property("bucket")["description"])
	require.Equal(t, "red", property("color")["default"])
	require.Equal(t, []any{"string", "number"}, property("every")["type"])
	require.Equal(t, "dendra-duration", property("every")["format"])
	require.Equal(t, job.SecretPattern, property("token")["pattern"])
	require.NotContains(t, document.Properties, "Skipped")
}

func TestParseOfOwnJSONChecksTheSame(t *testing.T) {
	t.Parallel()
	own := schemaOf[spec](t)
	parsed, err := schema.Parse(own.JSON())
	require.NoError(t, err)
	for _, text := range []string{good, `{}`, `{"colour":1,"every":"P1M","token":"x","sizes":[{}]}`} {
		require.Equal(t, own.Check(decode(t, text)), parsed.Check(decode(t, text)))
	}
}

func TestParseOfForeignSchema(t *testing.T) {
	t.Parallel()
	schema, err := schema.Parse([]byte(`{
		"type": "object",
		"$defs": {"name": {"type": "string", "maxLength": 3}},
		"properties": {
			"a": {"$ref": "#/$defs/name"},
			"b": {"oneOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]},
			"c": {"anyOf": [{"const": 1}, {"const": 2}]},
			"d": {"type": "array", "contains": {"const": 1}},
			"e": {"not": {"type": "string"}},
			"f": {"type": "integer", "multipleOf": 0.5},
			"g": {"format": "email"},
			"h": false,
			"i": {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
			"j": {"oneOf": [{"minimum": 1}, {"minimum": 2}]}
		},
		"propertyNames": {"pattern": "^[a-z]$"},
		"dependentRequired": {"e": ["a2"]},
		"maxProperties": 11
	}`))
	require.NoError(t, err)
	require.Equal(t, []string{
		`key "a2" is missing, which "e" needs`,
		`A: key "A" is not allowed here`,
		`a: the text has 4 characters, more than 3`,
		`b: 3 is less than 5`,
		`c: none of the forms that are allowed fits: 3 is not 1; or 3 is not 2`,
		`d: the list lacks an item that it must contain`,
		`e: "x" does not fit: 'not' failed`,
		`g: "nobody" is not of the format email`,
		`h: 1 is not allowed here`,
		`i: 1 is not a string or true or false`,
		`j: 3 fits more than one of the forms that are allowed`,
	}, messages(schema.Check(decode(t,
		`{"a":"abcd","b":3,"c":3,"d":[2],"e":"x","f":1,"g":"nobody","h":1,"i":1,"j":3,"A":1}`))))
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:                                      "the schema is not JSON",
		`{"type": "text"}`:                       "the schema cannot be used",
		`{"$ref": "file:///etc/passwd"}`:         "it refers to another document",
		`{"$ref": "http://127.0.0.1/x"}`:         "it refers to another document",
		`{"$schema": "http://127.0.0.1/schema"}`: "it refers to another document",
		`{"pattern": "("}`:                       "the schema cannot be used",
	} {
		_, err := schema.Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n")
	}
}

type recursive struct {
	Next *recursive `json:"next,omitempty"`
}

func TestForRefuses(t *testing.T) {
	t.Parallel()
	for want, typ := range map[string]reflect.Type{
		"schema of a job type without a spec type":                                                nil,
		"schema of int: it is not a struct":                                                       reflect.TypeFor[int](),
		"schema of time.Time: it is not a struct":                                                 reflect.TypeFor[time.Time](),
		"schema of schema_test.recursive: field Next: type schema_test.recursive contains itself": reflect.TypeFor[recursive](),
		"field Wait: a time.Duration is a count of nanoseconds in JSON: use job.Duration": reflect.TypeFor[struct {
			Wait time.Duration `json:"wait"`
		}](),
		"field Hook: JSON has nothing for a func": reflect.TypeFor[struct {
			Hook func() `json:"hook"`
		}](),
		"field ByID: a map has keys of type int, not strings": reflect.TypeFor[struct {
			ByID map[int]string `json:"by_id"`
		}](),
		"field Name: it has no name in a json tag": reflect.TypeFor[struct{ Name string }](),
	} {
		_, err := schema.For(typ)
		require.ErrorContains(t, err, want)
	}
}

type bounded struct {
	Wait  job.Duration   `json:"wait,omitzero" minimum:"PT1S" maximum:"PT12H" default:"PT5M"`
	Waits []job.Duration `json:"waits,omitempty" maximum:"PT1M" maxItems:"2"`
	Names []string       `json:"names,omitempty" enum:"ab,cd"`
	Size  float64        `json:"size,omitempty" minimum:"0.5" default:"1.5" example:"2"`
	Steps []int          `json:"steps,omitempty" default:"[1,2]"`
	URL   string         `json:"url,omitempty" format:"dendra-url"`
	Match []string       `json:"match,omitempty" format:"regex"`
}

func TestBounds(t *testing.T) {
	t.Parallel()
	own := schemaOf[bounded](t)
	announced, err := schema.Parse(own.JSON())
	require.NoError(t, err)
	for text, want := range map[string][]string{
		`{"wait":"PT1S","waits":["PT1M",60],"names":["ab"],"size":0.5}`: {},
		`{"wait":"P1D"}`:                    {`wait: "P1D" is longer than PT12H`},
		`{"wait":"PT0.5S"}`:                 {`wait: "PT0.5S" is shorter than PT1S`},
		`{"wait":0}`:                        {`wait: 0 is shorter than PT1S`},
		`{"wait":43201}`:                    {`wait: 43201 is longer than PT12H`},
		`{"wait":"soon"}`:                   {`wait: "soon" is not a duration: write it as PT15M, 15m or 900 (seconds)`},
		`{"wait":true}`:                     {`wait: true is not a duration: write it as PT15M, 15m or 900 (seconds)`},
		`{"waits":["PT1S","PT2M"]}`:         {`waits.1: "PT2M" is longer than PT1M`},
		`{"waits":["PT1S","PT1S","PT1S"]}`:  {`waits: the list has 3 items, more than 2`},
		`{"names":["ab","x"],"size":"0.1"}`: {`names.1: "x" is not one of ab, cd`, `size: "0.1" is not a number`},
		`{"size":0.1}`:                      {`size: 0.1 is less than 0.5`},
		`{"url":"https://a.example/x","match":["^a+$"]}`: {},
		`{"url":"127.0.0.1:80"}`:                         {`url: this is not a URL of the form http://HOST:PORT, without credentials and query`},
		`{"url":"http://user:word@a"}`:                   {`url: this is not a URL of the form http://HOST:PORT, without credentials and query`},
		`{"url":"http://a?q=1"}`:                         {`url: this is not a URL of the form http://HOST:PORT, without credentials and query`},
		`{"match":["a","("]}`:                            {"match.1: \"(\" is not a regular expression: error parsing regexp: missing closing ): `(`"},
	} {
		require.Equal(t, want, messages(own.Check(decode(t, text))), text)
		require.Equal(t, want, messages(announced.Check(decode(t, text))), text)
	}
	var spec bounded
	require.NoError(t, job.DecodeSpec(nil, &spec))
	require.Equal(t, bounded{Wait: job.Duration(5 * time.Minute), Size: 1.5, Steps: []int{1, 2}}, spec)
	_, err = schema.Parse([]byte(`{"type":"string","format":"dendra-duration","formatMaximum":"long"}`))
	require.ErrorContains(t, err, `formatMaximum: "long" is not a duration`)
}

func TestForRefusesTags(t *testing.T) {
	t.Parallel()
	for want, typ := range map[string]reflect.Type{
		`field A: tag minimun: unknown tag "minimun"; did you mean "minimum"?`: reflect.TypeFor[struct {
			A int `json:"a" minimun:"1"`
		}](),
		`field A: tag jsonschema: unknown tag "jsonschema"`: reflect.TypeFor[struct {
			A int `json:"a" jsonschema:"minimum=1"`
		}](),
		"field A: tag minLength: it is for a value of type string": reflect.TypeFor[struct {
			A int `json:"a" minLength:"1"`
		}](),
		"field A: tag minimum: it is for a value of type integer or number": reflect.TypeFor[struct {
			A string `json:"a" minimum:"1"`
		}](),
		"field A: tag maxItems: it is for a value of type array": reflect.TypeFor[struct {
			A string `json:"a" maxItems:"1"`
		}](),
		`field A: tag format: unknown format "regexp"; did you mean "regex"?`: reflect.TypeFor[struct {
			A string `json:"a" format:"regexp"`
		}](),
		"field A: tag format: it is for a value of type string": reflect.TypeFor[struct {
			A int `json:"a" format:"regex"`
		}](),
		`field A: tag maximum: "long" is not a duration`: reflect.TypeFor[struct {
			A job.Duration `json:"a" maximum:"long"`
		}](),
		`field A: tag default: "x" is not JSON`: reflect.TypeFor[struct {
			A int `json:"a,omitempty" default:"x"`
		}](),
		"field A: tag default: a boolean that is left out is false": reflect.TypeFor[struct {
			A bool `json:"a,omitempty" default:"true"`
		}](),
		"field A: it has a default and is required": reflect.TypeFor[struct {
			A int `json:"a" default:"1"`
		}](),
		"the schema cannot be used": reflect.TypeFor[struct {
			A string `json:"a" pattern:"("`
		}](),
	} {
		_, err := schema.For(typ)
		require.ErrorContains(t, err, want)
	}
}

func TestClosest(t *testing.T) {
	t.Parallel()
	known := []string{"color", "width", "run_timeout", "recurring", "a"}
	for name, want := range map[string]string{
		"colour":        "color",
		"reccurring":    "recurring",
		"run_timeuot":   "run_timeout",
		"run_time_outs": "run_timeout",
		"Width":         "width",
		"zzz":           "",
		"b":             "",
		"":              "",
	} {
		got, ok := schema.Closest(name, known)
		require.Equal(t, want, got, name)
		require.Equal(t, want != "", ok, name)
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{good, `{}`, `[]`, `null`, `{"every": "x", "sizes": [{}, 3]}`, `{"a/b~c%": 1}`} {
		f.Add(seed)
	}
	schema, err := schema.For(reflect.TypeFor[spec]())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		problems := schema.Check(value)
		for _, problem := range problems {
			require.NotEmpty(t, problem.Message)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"type":"object"}`, `true`, `{"$ref":"#"}`, `{"properties":{"a":{"$ref":"#/x"}}}`, `{"$id":"x"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		schema, err := schema.Parse([]byte(text))
		if err != nil {
			return
		}
		schema.Check(map[string]any{"a": int64(1), "b": []any{"x", nil}})
	})
}

type deepSpec struct {
	Name     string            `json:"name"`
	Required []string          `json:"required"`
	Parts    []deepPart        `json:"parts"`
	Tags     map[string]string `json:"tags,omitempty"`
}

type deepPart struct {
	Size int `json:"size" minimum:"1"`
}

// TestAnnouncedTypeIsCheckedLikeItsGoType compares the schemas of a type with
// those of the same type as a worker announces it.
func TestAnnouncedTypeIsCheckedLikeItsGoType(t *testing.T) {
	t.Parallel()
	whole, partial, err := schema.OfType(job.Type{Name: "Deep", Spec: reflect.TypeFor[deepSpec]()})
	require.NoError(t, err)
	announcedWhole, announcedPartial, err := schema.OfType(job.Type{Name: "Deep", SpecSchema: whole.JSON()})
	require.NoError(t, err)
	for _, value := range []map[string]any{
		{},
		{"name": "a", "required": []any{"x"}, "parts": []any{map[string]any{"size": 1}}},
		{"required": 3, "parts": []any{map[string]any{}, map[string]any{"size": 0, "colour": "red"}}},
		{"nmae": "a"},
	} {
		require.Equal(t, whole.Check(value), announcedWhole.Check(value), value)
		require.Equal(t, partial.Check(value), announcedPartial.Check(value), value)
	}
	require.Empty(t, announcedPartial.Check(map[string]any{"parts": []any{map[string]any{}}}))

	whole, partial, err = schema.OfType(job.Type{Name: "Unknown"})
	require.NoError(t, err)
	require.Nil(t, whole)
	require.Nil(t, partial)
	_, _, err = schema.OfType(job.Type{Name: "Far", SpecSchema: []byte(`{"$ref": "https://example.org/x"}`)})
	require.ErrorContains(t, err, "job type Far: the schema cannot be used")
}
