package jobsfile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

// TestDocumentedOptions compares the table of options in docs/jobs-toml.md with
// the options and their defaults.
func TestDocumentedOptions(t *testing.T) {
	documented := map[string]string{}
	for _, row := range rowsOf(t, "## Options") {
		documented[row[0]] = row[1]
	}
	want := map[string]string{}
	once, again := defaultsOf(t, job.ModeRecurring), defaultsOf(t, job.ModeContinuous)
	for key, value := range once {
		switch {
		case value == "":
			want[key] = "none"
		case value != again[key]:
			want[key] = fmt.Sprintf("`%s`, in continuous mode `%s`", value, again[key])
		default:
			want[key] = "`" + value + "`"
		}
	}
	require.Equal(t, want, documented)
	for _, mode := range job.Modes() {
		if mode != job.ModeContinuous {
			require.Equal(t, job.DefaultOptions(job.ModeRecurring), job.DefaultOptions(mode))
		}
	}
}

// defaultsOf gives the default of every option as text, "" for none.
func defaultsOf(t *testing.T, mode job.Mode) map[string]string {
	defaults := map[string]string{}
	var walk func(prefix string, value reflect.Value)
	walk = func(prefix string, value reflect.Value) {
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			field := value.Field(i)
			if field.Type() == reflect.TypeFor[job.Backoff]() {
				walk(prefix+name+".", field)
				continue
			}
			text := ""
			if !field.IsZero() || field.Kind() == reflect.Bool {
				encoded, err := json.Marshal(field.Interface())
				require.NoError(t, err)
				text = strings.Trim(string(encoded), `"`)
			} else {
				text = value.Type().Field(i).Tag.Get("default") // Left out of a definition that does not set it.
			}
			defaults[prefix+name] = text
		}
	}
	walk("", reflect.ValueOf(job.DefaultOptions(mode)))
	return defaults
}

func TestDocumentedModes(t *testing.T) {
	var documented []string
	for _, row := range rowsOf(t, "## Modes") {
		documented = append(documented, row[0])
	}
	var want []string
	schedule := reflect.TypeFor[job.Schedule]()
	for i := range schedule.NumField() {
		name, _, _ := strings.Cut(schedule.Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	require.Equal(t, want, documented)
}

// TestDocumentedRecurring compares the table of settings of a recurring job with
// its fields, and that of overlap with the policies.
func TestDocumentedRecurring(t *testing.T) {
	var documented []string
	for _, row := range rowsOf(t, "## Recurring jobs") {
		documented = append(documented, row[0])
	}
	var want []string
	recurring := reflect.TypeFor[job.Recurring]()
	for i := range recurring.NumField() {
		name, _, _ := strings.Cut(recurring.Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	for _, overlap := range job.Overlaps() {
		want = append(want, string(overlap))
	}
	require.Equal(t, want, documented)
}

// TestDocumentedModesAreRead reads each line of the examples of modes.
func TestDocumentedModesAreRead(t *testing.T) {
	for _, heading := range []string{"## Modes", "## Recurring jobs"} {
		_, section, _ := strings.Cut(document(t), heading+"\n")
		example := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(section)
		require.NotNil(t, example, heading)
		for line := range strings.Lines(example[1]) {
			require.Len(t, read(t, "[jobs.post_to_archive.main]\n"+line).Jobs, 1, line)
		}
	}
}

// TestDocumentedExample reads the example as it stands.
func TestDocumentedExample(t *testing.T) {
	example := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(document(t))
	require.NotNil(t, example)
	file := read(t, example[1])
	require.Len(t, file.Jobs, 1)
	require.Equal(t, "live_load_influx_v1.common1", file.Jobs[0].ID)
	require.Equal(t, `{"batch_points":5000,"influx_url":"http://127.0.0.1:8086","location":"common1"}`, string(file.Jobs[0].Spec))
}

func TestDocumentedProblemsAreReal(t *testing.T) {
	golden, err := os.ReadFile("testdata/everything-wrong.txt")
	require.NoError(t, err)
	_, problems, found := strings.Cut(document(t), "## Problems\n\n```\n")
	require.True(t, found)
	problems, _, _ = strings.Cut(problems, "```")
	for line := range strings.Lines(problems) {
		require.Contains(t, string(golden), line)
	}
}

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/jobs-toml.md")
	require.NoError(t, err)
	return string(text)
}

// rowsOf gives the first two cells of each row of the table under a heading;
// the first without its quotes.
func rowsOf(t *testing.T, heading string) [][2]string {
	t.Helper()
	_, section, found := strings.Cut(document(t), heading+"\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][2]string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		rows = append(rows, [2]string{strings.Trim(strings.TrimSpace(cells[1]), "`"), strings.TrimSpace(cells[2])})
	}
	return rows
}
