package jobsfile

import "strings"

// syntaxWords tell the mistakes that people make most, by a part of the parser's words. The
// first that fits holds. None quotes anything of the text, which may be a secret.
var syntaxWords = []struct{ part, text string }{
	{"expected newline", "there is more text after the value: each key has its own line, and texts have quotes"},
	{"'=' after key", "a key is followed by = and its value"},
	{"']' to close table", "the name of the table is not closed with ]"},
	{"']]' to close", "the name of the table is not closed with ]]"},
	{"strings cannot have new lines", "the text is not closed with a quote in its line"},
	{"string not terminated", "the text is not closed with three quotes"},
	{"unterminated", "the text is not closed with a quote"},
	{"strings cannot have control characters", "the text has a control character"},
	{"not allowed in comments", "the comment has a control character"},
	{"invalid UTF-8", "it is not UTF-8"},
	{"escape", `the text has an unknown escape: write \\ for a backslash, or use single quotes`},
	{"at start of key", "a key is expected here"},
	{"expected key but reached end", "a key is expected here"},
	{"expected value, not end", "the value is missing"},
	{"U+000A at start of value", "the value is missing"},
	{"at start of value", "a value is expected here, and texts have quotes"},
	{"expected value", "a value is expected here, and texts have quotes"},
	{"expected keyword", "a value is expected here, and texts have quotes"},
	{"strings must be quoted", "a value is expected here, and texts have quotes"},
	{"array is incomplete", "the list is not closed with ]"},
	{"after array value", "each value of a list is followed by a comma or ]"},
	{"inline table is incomplete", "the inline table is not closed with }"},
	{"after inline table", "each value of an inline table is followed by a comma or }"},
	{"too large to fit", "the number is too large"},
	{"leading zeroes", "a number has no zeros in front"},
	{"digit", "the number is not complete"},
	{"impossible date", wrongTime},
	{"date", wrongTime},
	{"timezone", wrongTime},
	{"times are expected", wrongTime},
	{"hour", wrongTime},
	{"minutes", wrongTime},
	{"seconds", wrongTime},
}

const wrongTime = "the date or time does not exist, or is not written as 2026-05-01T12:00:00Z"

// inOwnWords is what is wrong with the syntax; what is rare keeps the parser's words.
func inOwnWords(message string) string {
	for _, w := range syntaxWords {
		if strings.Contains(message, w.part) {
			return w.text
		}
	}
	return message
}
