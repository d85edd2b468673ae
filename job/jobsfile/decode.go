package jobsfile

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// notTOMLPrefix starts the messages about syntax, which quote nothing of the text.
const notTOMLPrefix = "not TOML: "

// decode reads TOML into values and the places where they stand. Values are nil
// when the syntax is wrong.
func decode(s *source) (map[string]any, *node, []Problem) {
	l := &locator{source: s}
	if err := l.locate(); err != nil {
		if syntax, ok := errors.AsType[*unstable.ParserError](err); ok {
			l.problems = append(l.problems, s.syntaxProblem(syntax))
		}
		return nil, nil, l.problems
	}
	if l.stuck {
		return nil, nil, l.problems
	}
	values := map[string]any{}
	if err := toml.Unmarshal(l.cleaned, &values); err != nil {
		if len(l.problems) == 0 { // Else it may follow from them.
			l.problems = []Problem{decodeProblem(s, err)}
		}
		return nil, nil, l.problems
	}
	return values, l.root, l.problems
}

func decodeProblem(s *source, err error) Problem {
	offset := 0
	if decoded, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := decoded.Position()
		offset = s.lines[min(line, len(s.lines))-1] + column - 1
	}
	return s.problem(offset, "%s%s", notTOMLPrefix, inOwnWords(strings.TrimPrefix(err.Error(), "toml: ")))
}

// syntaxProblem reports where the parser gave up.
func (s *source) syntaxProblem(syntax *unstable.ParserError) Problem {
	// The offset of a part of a slice, as unstable.Parser.Range finds it.
	offset := cap(s.text) - cap(syntax.Highlight)
	if offset < 0 || offset > len(s.text) {
		offset = len(s.text)
	}
	return s.problem(offset, "%s%s", notTOMLPrefix, inOwnWords(syntax.Message))
}
