package plantext

import (
	"strings"
	"unicode"

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

// Line is one line, without its end. It has no control characters.
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

// Clean replaces control characters, which would break a line or control a terminal.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
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
