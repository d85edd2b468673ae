package main_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// mostWords is how many words a sentence or a cell of a table may have.
const mostWords = 25

var (
	generated = regexp.MustCompile(`(?s)<!-- begin of generated.*?<!-- end of generated -->`)
	item      = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
	linkText  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	sentence  = regexp.MustCompile(`[.!?][*)]*(?:\s+|$)`)
)

// TestDocsArePlain finds sentences and cells of tables that are too long to be read at once, in
// the pages that are written by hand.
func TestDocsArePlain(t *testing.T) {
	t.Parallel()
	for page, text := range pages(t) {
		if slices.Contains([]string{referenceFile, errorsFile, tablesFile}, "../"+page) {
			continue
		}
		for _, part := range parts(text) {
			if n := words(part); n > mostWords {
				t.Errorf("%s has %d words at once: %s", page, n, part)
			}
		}
	}
}

// parts are the sentences and the cells of a page. What stands after a colon belongs to the
// sentence before it.
func parts(page string) []string {
	var all, paragraphs []string
	paragraph := ""
	for line := range strings.Lines(fence.ReplaceAllString(generated.ReplaceAllString(page, ""), "\n\n")) {
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
