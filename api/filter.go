package api

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/dendrascience/dendra-jobs/job/schema"
)

// A filter is a part of AIP-160: terms such as status = FAILING, joined by AND. A term is a
// field, an operator and a value. A value is a word, or a text in quotation marks, in which
// a backslash stands before a quotation mark, a backslash or a star. A star at the end of a
// value stands for any rest.

// operator of a term.
type operator string

const (
	opEqual    operator = "="
	opNotEqual operator = "!="
	opFrom     operator = ">="
	opBefore   operator = "<"
)

// term is one condition of a filter.
type term struct {
	field string
	// tag is the name of a tag, if the field is tags.
	tag   string
	op    operator
	value string
	// rest says that the value is only the beginning.
	rest bool
}

func (t term) name() string {
	if t.field == fieldTags {
		return t.field + "." + t.tag
	}
	return t.field
}

// isTime reports whether the term bounds a time.
func (t term) isTime() bool { return t.op == opFrom || t.op == opBefore }

// exact is the value that the field has to have.
func (t term) exact() (string, bool) { return t.value, t.op == opEqual && !t.rest }

// holds reports whether the term holds for a value of its field.
func (t term) holds(value string) bool {
	same := value == t.value || t.rest && strings.HasPrefix(value, t.value)
	return same == (t.op == opEqual)
}

// fieldRule says what may be asked of a field.
type fieldRule struct {
	ops []operator
	// exact says that the field takes no star, and is named once with each operator.
	exact bool
	// words are the values that there are, nil for any.
	words []string
}

const fieldTags = "tags"

// Rules of fields.
var (
	anyText   = fieldRule{ops: []operator{opEqual, opNotEqual}}
	exactText = fieldRule{ops: []operator{opEqual}, exact: true}
	tagValue  = fieldRule{ops: []operator{opEqual}}
	timeBound = fieldRule{ops: []operator{opFrom, opBefore}, exact: true}
)

// oneOfWords is the rule of a field that is an enum: words in lower case.
func oneOfWords(words ...string) fieldRule {
	return fieldRule{ops: []operator{opEqual, opNotEqual}, words: words}
}

// word is a status or mode as filters know it: held_back, one_shot.
func word(text string) string { return strings.ToLower(strings.ReplaceAll(text, "-", "_")) }

func words[S ~string](list []S) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = word(string(s))
	}
	return texts
}

// Bounds of a filter.
const (
	maxFilterBytes = 2000
	maxTerms       = 32
)

// filterError is what is wrong with a filter.
type filterError struct{ text string }

func (e *filterError) Error() string { return e.text }

func filterErrorf(format string, args ...any) error {
	return &filterError{fmt.Sprintf(format, args...)}
}

// readFilter parses the filter of a request.
func readFilter(text string, rules map[string]fieldRule) ([]term, error) {
	terms, err := parseFilter(text, rules)
	if err != nil {
		return nil, badRequestFor(invalidFilter, violation{"filter", err.Error()})
	}
	return terms, nil
}

// parseFilter reads a filter and checks it by the rules of its fields.
func parseFilter(text string, rules map[string]fieldRule) ([]term, error) {
	if len(text) > maxFilterBytes {
		return nil, filterErrorf("the filter has %d bytes, more than %d", len(text), maxFilterBytes)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return nil, filterErrorf("the filter has control characters")
	}
	p := filterParser{rest: text, rules: rules}
	var terms []term
	for {
		p.space()
		if p.rest == "" && len(terms) == 0 {
			return nil, nil
		}
		if len(terms) == maxTerms {
			return nil, filterErrorf("the filter has more than %d terms", maxTerms)
		}
		t, err := p.term()
		if err != nil {
			return nil, err
		}
		if rules[t.field].exact && slices.ContainsFunc(terms, func(other term) bool { return other.name() == t.name() && other.op == t.op }) {
			return nil, filterErrorf("the filter names %s twice", t.name())
		}
		terms = append(terms, t)
		if p.space(); p.rest == "" {
			return terms, nil
		}
		if joint := p.bare(); joint != "AND" {
			return nil, filterErrorf("at %s: AND joins terms, and nothing else does", near(joint+p.rest))
		}
	}
}

type filterParser struct {
	rest  string
	rules map[string]fieldRule
}

func (p *filterParser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// bare takes a word without quotation marks.
func (p *filterParser) bare() string {
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.:/@+-*", r)
	})
	if end < 0 {
		end = len(p.rest)
	}
	taken := p.rest[:end]
	p.rest = p.rest[end:]
	return taken
}

func (p *filterParser) term() (term, error) {
	start := p.rest
	name := p.bare()
	t := term{field: name}
	if tag, ok := strings.CutPrefix(name, fieldTags+"."); ok {
		if t.field, t.tag = fieldTags, tag; tag == "" {
			quoted, rest, err := p.value()
			if err != nil || rest || quoted == "" {
				return t, filterErrorf("at %s: a tag is written as tags.NAME, or tags.\"NAME\"", near(start))
			}
			t.tag = quoted
		}
	}
	rule, ok := p.rules[t.field]
	switch {
	case name == "":
		return t, filterErrorf("at %s: a term is a field, an operator and a value, such as type = \"X\"", near(start))
	case !ok:
		return t, filterErrorf("%s", schema.Unknown("field", name, sortedKeys(p.rules)))
	case t.field == fieldTags && t.tag == "":
		return t, filterErrorf("a tag is written as tags.NAME")
	}
	p.space()
	if t.op = p.operator(); !slices.Contains(rule.ops, t.op) {
		return t, filterErrorf("field %s takes %s, not what is at %s", t.name(), joinOps(rule.ops), near(string(t.op)+p.rest))
	}
	p.space()
	start = p.rest
	var err error
	if t.value, t.rest, err = p.value(); err != nil {
		return t, filterErrorf("at %s: %s", near(start), err)
	}
	return t, t.check(rule)
}

// check checks the value of a term.
func (t *term) check(rule fieldRule) error {
	switch {
	case t.rest && rule.exact:
		return filterErrorf("field %s takes no *", t.name())
	case t.field == fieldTags && (t.rest != (t.value == "")):
		return filterErrorf("tag %s takes a whole value, or * alone for any", t.tag)
	case rule.words != nil:
		t.value = word(t.value)
		if !t.rest && !slices.Contains(rule.words, t.value) {
			return filterErrorf("%s", schema.Unknown(t.field, t.value, rule.words))
		}
	case slices.Contains(rule.ops, opFrom):
		if _, err := time.Parse(time.RFC3339, t.value); err != nil {
			return filterErrorf("field %s takes a time such as 2027-01-31T12:00:00Z", t.field)
		}
	}
	return nil
}

func (p *filterParser) operator() operator {
	for _, op := range []operator{opNotEqual, opFrom, opEqual, opBefore} {
		if rest, ok := strings.CutPrefix(p.rest, string(op)); ok {
			p.rest = rest
			return op
		}
	}
	return ""
}

// value takes a value; rest says that a star ends it.
func (p *filterParser) value() (value string, rest bool, err error) {
	if !strings.HasPrefix(p.rest, `"`) {
		value = p.bare()
		if value == "" {
			return "", false, filterErrorf("there is no value; a text with other characters than letters and digits is put in \"quotation marks\"")
		}
		value, rest = strings.CutSuffix(value, "*")
		return value, rest, noStar(value)
	}
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), rest, nil
		case rest:
			return "", false, noStar("*")
		case c == '*':
			rest = true
		case c == '\\' && i+1 < len(p.rest) && strings.IndexByte(`"\*`, p.rest[i+1]) >= 0:
			i++
			b.WriteByte(p.rest[i])
		case c == '\\':
			return "", false, filterErrorf(`a backslash stands before ", \ or * alone`)
		default:
			b.WriteByte(c)
		}
	}
	return "", false, filterErrorf("the text has no quotation mark at its end")
}

func noStar(value string) error {
	if strings.Contains(value, "*") {
		return filterErrorf("a * stands at the end of a value alone")
	}
	return nil
}

func joinOps(ops []operator) string {
	texts := make([]string, len(ops))
	for i, op := range ops {
		texts[i] = string(op)
	}
	return strings.Join(texts, " or ")
}

// near is the beginning of what is left, for errors.
func near(text string) string {
	if text == "" {
		return "the end"
	}
	return fmt.Sprintf("%.20q", text)
}
