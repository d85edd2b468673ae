package plantext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Tone says what a line is about. Terminals show it as a color.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Added
	Changed
	Removed
	Blocked
	Faint
)

// Line is one line, without its end. It is clean, see Clean.
type Line struct {
	Tone Tone
	Text string
}

// Join is the text of lines, each with its end.
func Join(lines []Line) string {
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(line.Text)
		text.WriteByte('\n')
	}
	return text.String()
}

// Clean replaces characters that would break a line, control a terminal, or show a text other
// than it is: control and format characters, with which texts change their direction.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return ' '
		}
		return r
	}, text)
}

func steers(r rune) bool {
	return r == unicode.ReplacementChar || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// CleanLines is Clean for what goes to a screen: it keeps line ends, tabs, and the escape
// sequences that the program itself has put in, such as colors.
func CleanLines(text string, own ...string) string {
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if r == 0x1b {
			for _, sequence := range own {
				if strings.HasPrefix(text, sequence) {
					size, r = len(sequence), '\n'
				}
			}
		}
		if r != '\n' && r != '\t' && steers(r) {
			b.WriteByte(' ')
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// Value is one side of a changed value.
func Value(text string) string {
	if text == "" {
		return "(not set)"
	}
	return Clean(text)
}

// list is lines to which more come.
type list []Line

func (l *list) add(tone Tone, text string) { *l = append(*l, Line{tone, Clean(text)}) }

// fields adds changed values.
func (l *list) fields(fields []*jobsv1.FieldChange) {
	for _, field := range fields {
		l.add(Plain, "    "+field.GetPath()+": "+Value(field.GetOldValue())+" → "+Value(field.GetNewValue()))
	}
}

// foreign adds resources that nobody manages.
func (l *list) foreign(names []string) {
	for _, name := range names {
		l.add(Blocked, "! "+name+" is unmanaged: it has a job's name, and starter did not create it")
	}
}

// modeWord is the word that people read for a mode, one-shot for one_shot.
func modeWord(mode string) string { return strings.ReplaceAll(mode, "_", "-") }
