package job_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "…"},
		{"abcdefgh", 7, "abcd…"},
		{"äöüäöü", 12, "äöüäöü"},
		{"äöüäöüä", 12, "äöüä…"}, // not the half of a letter
	} {
		got := job.Cut(c.text, c.most)
		require.Equal(t, c.want, got, c.text)
		require.LessOrEqual(t, len(got), c.most)
		require.True(t, utf8.ValidString(got))
	}
}
