package job

import "strings"

// Cut shortens a text to at most most bytes of UTF-8, the last of which say that
// something was cut: "…". most is at least three.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
