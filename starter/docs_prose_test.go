package main_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const (
	// mostWords is how many words a sentence or a cell of a table may have.
	mostWords = 25
	// allWords is how many the pages that are written by hand may have together.
	allWords = 25_000
)

// mostOf is how many words pages may have that are read in one go.
var mostOf = map[string]int{"README.md": 1000, "docs/architecture.md": 2000}

var (
	item     = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
	linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	sentence = regexp.MustCompile(`[.!?][*)]*(?:\s+|$)`)
)

// TestDocsArePlain finds sentences and cells of tables that are too long to be read at once, in
// the pages that are written by hand.
func TestDocsArePlain(t *testing.T) {
	t.Parallel()
	for page, text := range byHand(t) {
		for _, part := range parts(text) {
			if n := words(part); n > mostWords {
				t.Errorf("%s has %d words at once: %s", page, n, part)
			}
		}
	}
}

// TestDocsAreShort bounds what there is to read, with tables and code.
func TestDocsAreShort(t *testing.T) {
	t.Parallel()
	all := 0
	for page, text := range byHand(t) {
		n := words(text)
		all += n
		if most, bounded := mostOf[page]; bounded && n > most {
			t.Errorf("%s has %d words: at most %d", page, n, most)
		}
	}
	if all > allWords {
		t.Errorf("the pages have %d words: at most %d", all, allWords)
	}
}

// byHand are the pages that are not generated.
func byHand(t *testing.T) map[string]string {
	t.Helper()
	texts := pages(t)
	maps.DeleteFunc(texts, func(page, _ string) bool {
		return slices.Contains([]string{referenceFile, errorsFile, tablesFile}, "../"+page)
	})
	return texts
}

// parts are the sentences and the cells of a page. What stands after a colon belongs to the
// sentence before it.
func parts(page string) []string {
	var all, paragraphs []string
	paragraph := ""
	for line := range strings.Lines(fence.ReplaceAllString(page, "\n\n")) {
		code := strings.HasPrefix(line, "    ")
		if cells := strings.Split(line, "|"); cells[0] == "" {
			all = append(all, cells...)
		}
		if code || strings.TrimSpace(line) == "" || strings.ContainsAny(line[:1], "#|") || item.MatchString(line) {
			paragraphs, paragraph = append(paragraphs, paragraph), ""
		}
		if !code && !strings.ContainsAny(line[:1], "#|") {
			paragraph += item.ReplaceAllString(line, "")
		}
	}
	for _, each := range append(paragraphs, paragraph) {
		all = append(all, sentence.Split(linkText.ReplaceAllString(each, "$1"), -1)...)
	}
	return all
}

// words counts what has a letter or a digit.
func words(text string) int {
	n := 0
	for _, word := range strings.Fields(text) {
		if strings.IndexFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
			n++
		}
	}
	return n
}
