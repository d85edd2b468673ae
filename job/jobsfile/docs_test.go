package jobsfile_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

// TestDocumentedOverlaps compares the table of overlap in docs/jobs-toml.md with the
// policies. Settings and options are in docs/job-reference.md, which is generated.
func TestDocumentedOverlaps(t *testing.T) {
	t.Parallel()
	var want []string
	for _, overlap := range job.Overlaps() {
		want = append(want, string(overlap))
	}
	require.Equal(t, want, rowsOf(t, "## Recurring jobs"))
}

// TestDocumentedModesAreRead reads each line of the examples of modes.
func TestDocumentedModesAreRead(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	example := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(document(t))
	require.NotNil(t, example)
	file := read(t, example[1])
	require.Len(t, file.Jobs, 1)
	require.Equal(t, "live_load_influx_v1.common1", file.Jobs[0].ID)
	require.Equal(t, `{"batch_points":5000,"influx_url":"http://127.0.0.1:8086","location":"common1"}`, string(file.Jobs[0].Spec))
}

func TestDocumentedProblemsAreReal(t *testing.T) {
	t.Parallel()
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

// rowsOf gives the first cell, without its quotes, of each row of the tables under a
// heading.
func rowsOf(t *testing.T, heading string) []string {
	t.Helper()
	_, section, found := strings.Cut(document(t), heading+"\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && strings.HasPrefix(cells[1], " `") {
			rows = append(rows, strings.Trim(strings.TrimSpace(cells[1]), "`"))
		}
	}
	return rows
}
