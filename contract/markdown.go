package contract

import (
	"strings"
	"unicode"
)

// Plain is a text from outside in what Temporal's Web UI shows as Markdown: one line, which makes
// neither links nor pictures nor headings. Whatever may stand for more than itself is escaped, as
// CommonMark 0.31, section 2.4, has it, and the addresses that GitHub's dialect makes links of.
func Plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			r = ' '
		case strings.ContainsRune("\\`*_{}[]<>()#+!|~&@:", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "www.", `www\.`)
}
