package jobsfile

import (
	"bytes"
	"errors"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/pelletier/go-toml/v2/unstable"
)

// notTOMLPrefix starts the messages about syntax, which quote nothing of the text
// but single characters.
const notTOMLPrefix = "not TOML: "

// decode reads TOML into values and the places where they stand. Values are nil
// when the syntax is wrong.
func decode(s *source) (map[string]any, *node, []Problem) {
	l := &locator{source: s}
	if err := l.locate(); err != nil {
		if syntax, ok := errors.AsType[*unstable.ParserError](err); ok {
			l.problems = append(l.problems, l.syntaxProblem(syntax))
		}
		return nil, nil, l.problems
	}
	if l.stuck {
		return nil, nil, l.problems
	}
	values := map[string]any{}
	if _, err := toml.Decode(string(l.cleaned), &values); err != nil {
		return nil, nil, append(l.problems, decodeProblem(s, err))
	}
	return values, l.root, l.problems
}

func decodeProblem(s *source, err error) Problem {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return notTOML(s, syntax)
	}
	return s.problem(0, "%s%s", notTOMLPrefix, err)
}

// quoted is what the decoder quotes from the text, beyond single characters: it
// may be a secret without its quotes. The place says enough.
var quoted = regexp.MustCompile(`(,? but (got|found)|:)? ("(\\.|[^"\\]){2,}"|'[^']{3,}')( instead)?`)

// notTOML reports an error of the decoder, for which the end of a text is a NUL.
func notTOML(s *source, err toml.ParseError) Problem {
	message := strings.ReplaceAll(err.Message, `'\x00'`, "the end of the file")
	if !strings.Contains(message, "control characters") { // It gives the code of one.
		message = quoted.ReplaceAllString(message, "")
	}
	return s.problem(err.Position.Start, "%s%s", notTOMLPrefix, strings.TrimSuffix(message, "."))
}

// syntaxProblem reports where the locator's parser gave up, in the words of the
// decoder if that gives up there as well.
func (l *locator) syntaxProblem(syntax *unstable.ParserError) Problem {
	s := l.source
	// The offset of a part of a slice, as unstable.Parser.Range finds it.
	offset := cap(s.text) - cap(syntax.Highlight)
	if offset < 0 || offset > len(s.text) {
		offset = len(s.text)
	}
	end := len(s.text)
	if newline := bytes.IndexByte(s.text[offset:], '\n'); newline >= 0 {
		end = offset + newline + 1
	}
	l.blankSkipped(end)
	if understood := l.cleaned[:end]; !mayNestDeep(understood) {
		var values map[string]any
		_, err := toml.Decode(string(understood), &values)
		if decoded, ok := errors.AsType[toml.ParseError](err); ok && decoded.Position.Start <= end {
			return notTOML(s, decoded)
		}
	}
	return s.problem(offset, "%s%s", notTOMLPrefix, syntax.Message)
}

// mayNestDeep says of a text that was not understood whether the decoder, which
// has no limits, should be spared it.
func mayNestDeep(text []byte) bool {
	const mostBrackets, mostDots = 10_000, 1000
	for line := range bytes.Lines(text) {
		if bytes.Count(line, []byte(".")) > mostDots {
			return true
		}
	}
	return bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > mostBrackets
}
