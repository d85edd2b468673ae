package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestPlain keeps texts from outside what they are in a view that knows Markdown.
func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"12 of 30 files, 4.5 MB":                  "12 of 30 files, 4.5 MB",
		"[log in](https://evil.example)":          `\[log in\]\(https\://evil.example\)`,
		"![x](http://evil.example/p.png)":         `\!\[x\]\(http\://evil.example/p.png\)`,
		"see www.evil.example, a@evil.example":    `see www\.evil.example, a\@evil.example`,
		"<img src=x onerror=alert(1)> &lt;":       `\<img src=x onerror=alert\(1\)\> \&lt;`,
		"a\n\n# Approved\n- **all** is `well`":    "a  \\# Approved - \\*\\*all\\*\\* is \\`well\\`",
		`\[x\]`:                                   `\\\[x\\\]`,
		"file_name_x \u202egnihton \x1b[31m~~a~~": `file\_name\_x  gnihton  \[31m\~\~a\~\~`,
	} {
		require.Equal(t, want, contract.Plain(text), text)
	}
	j := job.Job{ID: "take_steps.a", Trigger: job.Trigger{OneShot: &job.OneShot{}}, Options: job.Options{Description: "[x](https://evil.example)"}}
	require.Equal(t, `take_steps.a · one-shot · \[x\]\(https\://evil.example\)`, contract.Summary(j))
}
