package jobsfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the largest file that is read.
const MaxBytes = 1 << 20

// source is the text of a file with the starts of its lines.
type source struct {
	name  string
	text  []byte
	lines []int
}

func newSource(name string, text []byte) *source {
	s := &source{name: name, text: text, lines: []int{0}}
	for offset, c := range text {
		if c == '\n' {
			s.lines = append(s.lines, offset+1)
		}
	}
	return s
}

// position is the line and the column, in characters, of a byte.
func (s *source) position(offset int) (line, column int) {
	offset = min(max(offset, 0), len(s.text))
	// At the end of a text the decoder points into the last character.
	for offset > 0 && offset < len(s.text) && !utf8.RuneStart(s.text[offset]) {
		offset--
	}
	index, exact := slices.BinarySearch(s.lines, offset)
	if !exact {
		index--
	}
	return index + 1, utf8.RuneCount(s.text[s.lines[index]:offset]) + 1
}

func (s *source) problem(offset int, format string, args ...any) Problem {
	line, column := s.position(offset)
	return Problem{File: s.name, Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

// checkText finds a file that is no TOML text at all.
func (s *source) checkText() []Problem {
	one := func(offset int, format string, args ...any) []Problem {
		return []Problem{s.problem(offset, format, args...)}
	}
	switch {
	case len(s.text) > MaxBytes:
		return one(0, "the file is larger than 1 MiB")
	case bytes.HasPrefix(s.text, []byte("\xff\xfe")), bytes.HasPrefix(s.text, []byte("\xfe\xff")):
		return one(0, "the file is in UTF-16: save it as UTF-8")
	case bytes.HasPrefix(s.text, []byte("\xef\xbb\xbf")):
		return one(0, "the file starts with a byte order mark: save it as UTF-8 without one")
	}
	if offset := bytes.IndexByte(s.text, 0); offset >= 0 {
		if offset < 2 {
			return one(0, "the file is in UTF-16 or is not text: save it as UTF-8")
		}
		return one(offset, "a NUL byte: the file is not text")
	}
	for offset := 0; offset < len(s.text); {
		r, size := utf8.DecodeRune(s.text[offset:])
		if r == utf8.RuneError && size == 1 {
			return one(offset, "byte 0x%02X is not UTF-8", s.text[offset])
		}
		offset += size
	}
	return nil
}

// ownTable finds the tables of a jobs file, whichever way they are written.
var ownTable = regexp.MustCompile(`(?m)^[ \t]*(\[{1,2}[ \t]*)?["']?(jobs|defaults)["']?[ \t]*[\].=]`)

// notJobs replaces the problems of a file that is something else altogether, for
// example one with passwords, by one that quotes nothing of it. Why it is not
// TOML can be recognized without.
func (s *source) notJobs(problems []Problem) []Problem {
	if ownTable.Match(s.text) {
		return problems
	}
	for _, problem := range problems {
		if !strings.HasPrefix(problem.Message, notTOMLPrefix) && problem.Message != tooDeep {
			problem.Message = "not a jobs file: it has no table [jobs.TYPE.KEY]"
			return []Problem{problem}
		}
	}
	return problems
}
