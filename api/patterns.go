package api

import (
	"cmp"

	"buf.build/go/protovalidate"
)

// Texts of the patterns of the contract that several fields have.
const (
	nameText     = "it has 1 to 512 characters of ASCII, without spaces"
	longNameText = "it has at most 512 characters of ASCII, without spaces"
)

// patternTexts say what the patterns of the contract allow.
var patternTexts = map[string]string{
	`^[!-~]{1,512}$`:     nameText,
	`^[!-~]{0,512}$`:     longNameText,
	`^([!-~]{1,512})?$`:  longNameText,
	`^[a-z0-9.-]{0,63}$`: "it has at most 63 of a-z, 0-9, '.' and '-'",
	`^[a-z][a-z0-9_]{0,127}\.[a-z0-9][a-z0-9._-]{0,63}$`: "it is the job type in snake case, a dot, and up to 64 of a-z, 0-9, '.', '_' and '-', such as extract_hobo_time_frame.demo",
	`^([A-Z][A-Za-z0-9]{0,63})?$`:                        "it is in CamelCase, of letters and digits, at most 64 characters",
	`^[a-z0-9][a-z0-9._-]{0,63}$`:                        "it has 1 to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit",
	`^([01][0-9]|2[0-3]):[0-5][0-9]$`:                    "it is an hour and a minute, such as 06:00",
	`^[^./ *>]+\.[^/ *>]+$`:                              "it is two names with a dot between them, without spaces, '/', '*' and '>'",
	`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`:                   "it has 1 to 64 letters, digits, '_' and '-', and begins with a letter or digit",
	`^[^\x00-\x1f/\\]{1,200}$`:                           "it has 1 to 200 characters, without slashes and control characters",
	`^[0-9a-f]{16,64}$`:                                  "it has 16 to 64 hexadecimal digits in lower case",
	`^(.*/)?$`:                                           "it ends with '/', or is empty",
}

// ruleText says what a rule of the contract asks for: of a pattern, in words.
func ruleText(v *protovalidate.Violation) string {
	text := v.Proto.GetMessage()
	if v.Proto.GetRuleId() == "string.pattern" {
		return cmp.Or(patternTexts[v.RuleValue.String()], text)
	}
	return text
}
