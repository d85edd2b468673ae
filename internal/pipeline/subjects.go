package pipeline

import (
	"fmt"
	"regexp"
	"strings"
)

// Operation keeps three flows of data apart: subjects differ in it, and so does
// everything that follows from a subject.
type Operation string

// The operations.
const (
	OperationLive Operation = "live" // data as it comes in
	OperationTest Operation = "test" // an integration that is being tried out
	OperationBulk Operation = "bulk" // imports and replays, which must not delay live data
)

// Operations lists them all.
func Operations() []Operation { return []Operation{OperationLive, OperationTest, OperationBulk} }

// Check reports an operation that there is not.
func (o Operation) Check() error {
	switch o {
	case OperationLive, OperationTest, OperationBulk:
		return nil
	}
	return fmt.Errorf("operation mode %q is not one of live, test, bulk", string(o))
}

// Roots of subjects. A new meaning of a message gets a new version.
const (
	rawRoot        = "dendra.raw.v1"
	prepRoot       = "dendra.prep.v1"
	quarantineRoot = "dendra.quarantine.v1"
)

var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckToken reports why a name cannot be part of a subject: a dot would add a
// level to it, and a wildcard or a space break it. What names the name in the
// error: "organization".
func CheckToken(what, name string) error {
	if !tokenPattern.MatchString(name) {
		return fmt.Errorf("%s %q: a name starts with a-z or 0-9, goes on with a-z, 0-9, '_' or '-', "+
			"and has at most 64 characters", what, name)
	}
	return nil
}

// RawSubject is where a source of an organization puts what the vendor said:
// dendra.raw.v1.<operation>.<organization>.<source>. The names must pass
// [CheckToken].
func RawSubject(operation Operation, organization, source string) string {
	return strings.Join([]string{rawRoot, string(operation), organization, source}, ".")
}

// RawSubjects matches the subjects of all raw messages.
const RawSubjects = rawRoot + ".>"

// ParseRawSubject is the reverse of [RawSubject]. It reports false for a subject
// that is not of that form.
func ParseRawSubject(subject string) (operation Operation, organization, source string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(subject, rawRoot+"."), ".")
	if !strings.HasPrefix(subject, rawRoot+".") || len(parts) != 3 {
		return "", "", "", false
	}
	operation = Operation(parts[0])
	if operation.Check() != nil || !tokenPattern.MatchString(parts[1]) || !tokenPattern.MatchString(parts[2]) {
		return "", "", "", false
	}
	return operation, parts[1], parts[2], true
}

// PrepSubject is where the points for a location go:
// dendra.prep.v1.<operation>.<location>. The names must pass [CheckToken].
func PrepSubject(operation Operation, location string) string {
	return strings.Join([]string{prepRoot, string(operation), location}, ".")
}

// quarantineSubject is dendra.quarantine.v1.<stage>.<operation>.<name>.<id>. The
// id is a digest of the content, so that a subject holds one message for ever.
func quarantineSubject(stage Stage, operation Operation, name, id string) string {
	return strings.Join([]string{quarantineRoot, string(stage), string(operation), name, id}, ".")
}

// ParsePrepSubject is the reverse of [PrepSubject]. It reports false for a subject
// that is not of that form.
func ParsePrepSubject(subject string) (operation Operation, location string, ok bool) {
	rest, found := strings.CutPrefix(subject, prepRoot+".")
	first, location, _ := strings.Cut(rest, ".")
	operation = Operation(first)
	if !found || operation.Check() != nil || !tokenPattern.MatchString(location) {
		return "", "", false
	}
	return operation, location, true
}

// parseQuarantineSubject is the reverse of quarantineSubject, apart from the id.
func parseQuarantineSubject(subject string) (stage Stage, operation Operation, name string, ok bool) {
	rest, found := strings.CutPrefix(subject, quarantineRoot+".")
	parts := strings.Split(rest, ".")
	if !found || len(parts) < 4 {
		return "", "", "", false
	}
	stage, operation = Stage(parts[0]), Operation(parts[1])
	names := parts[2 : len(parts)-1]
	for _, name := range names {
		if !tokenPattern.MatchString(name) {
			return "", "", "", false
		}
	}
	want := 2 // an organization, and a source or a kind
	if stage == StageLoad {
		want = 1 // a location
	}
	if stage.Check() != nil || operation.Check() != nil || len(names) != want || parts[len(parts)-1] == "" {
		return "", "", "", false
	}
	return stage, operation, strings.Join(names, "."), true
}

// Token makes a token of a subject of any text. The id of a job has dots, and no "=".
func Token(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.':
			return '='
		case r <= ' ' || r == '*' || r == '>' || r == 0x7f:
			return '_'
		}
		return r
	}, text)
}

// SafeName makes a database, measurement or field name of any text: every
// character that is no ASCII letter, digit or underscore becomes an underscore.
func SafeName(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, text)
}
