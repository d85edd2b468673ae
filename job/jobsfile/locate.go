package jobsfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxDepth bounds how deep tables, lists and dotted keys may nest. It keeps
// the decoder, which has no limit of its own, from running out of stack.
const maxDepth = 64

// node says where a table, a list or a value stands in a file. Offsets count
// bytes.
type node struct {
	key     int  // of the key that names it
	value   int  // of the value, or of the header of a table
	defined bool // by a header or a key of its own, not just on the way to another
	inline  bool // an inline table, to which nothing can be added
	entries map[string]*node
	items   []*node
}

// entry is the entry of a table, or the item of a list; nil if there is none.
func (n *node) entry(key string) *node {
	if n == nil {
		return nil
	}
	if found := n.entries[key]; found != nil {
		return found
	}
	if index, err := strconv.Atoi(key); err == nil && 0 <= index && index < len(n.items) {
		return n.items[index]
	}
	return nil
}

// locate follows a path as far as it leads, and is where it ends: at the key or
// at the value when the whole path exists, else at the table that lacks the rest.
func (n *node) locate(path []string, atKey bool) int {
	for _, key := range path {
		next := n.entry(key)
		if next == nil {
			return n.value
		}
		n = next
	}
	if atKey {
		return n.key
	}
	return n.value
}

func (n *node) add(key string, child *node) *node {
	if n.entries == nil {
		n.entries = map[string]*node{}
	}
	n.entries[key] = child
	return child
}

// locator walks the syntax of a file and notes where everything stands. It
// finds keys and tables that are given twice, all of them, where the decoder
// would stop at the first.
type locator struct {
	source   *source
	parser   unstable.Parser
	root     *node
	current  *node // the table that keys go into
	problems []Problem
	// cleaned is the text with repeated keys and tables blanked out, so that
	// the rest can be decoded; skipFrom is the start of such a table, or -1.
	cleaned  []byte
	skipFrom int
	// stuck: a repetition within an inline table cannot be blanked out.
	stuck bool
}

var (
	errTooDeep = errors.New("too deep")
	tooDeep    = fmt.Sprintf("tables, lists and dotted keys are nested more than %d levels deep", maxDepth)
)

// locate fills the tree. An error from the parser is *unstable.ParserError.
func (l *locator) locate() error {
	l.root = &node{}
	l.current = l.root
	l.cleaned = slices.Clone(l.source.text)
	l.skipFrom = -1
	l.parser.Reset(l.source.text)
	for l.parser.NextExpression() {
		expression := l.parser.Expression()
		var err error
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			err = l.table(expression)
		case unstable.KeyValue:
			err = l.keyValue(l.current, expression, true, 1)
		}
		if err != nil {
			return err
		}
	}
	if err := l.parser.Error(); err != nil {
		return err
	}
	l.blankSkipped(len(l.source.text))
	return nil
}

// keyPart is one part of a dotted key.
type keyPart struct {
	name   string
	offset int
}

func (l *locator) keyOf(expression *unstable.Node, depth int) ([]keyPart, error) {
	var parts []keyPart
	iterator := expression.Key()
	for iterator.Next() {
		part := keyPart{string(iterator.Node().Data), int(iterator.Node().Raw.Offset)}
		if depth+len(parts) > maxDepth {
			return nil, l.tooDeep(part.offset)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (l *locator) tooDeep(offset int) error {
	l.problems = append(l.problems, l.source.problem(offset, "%s", tooDeep))
	return errTooDeep
}

func (l *locator) table(expression *unstable.Node) error {
	parts, err := l.keyOf(expression, 0)
	if err != nil {
		return err
	}
	last := parts[len(parts)-1]
	header := bytes.LastIndexByte(l.source.text[:parts[0].offset], '[')
	if expression.Kind == unstable.ArrayTable {
		header = bytes.LastIndexByte(l.source.text[:header], '[')
	}
	l.blankSkipped(header)

	parent := l.descend(l.root, parts[:len(parts)-1])
	found := parent.entries[last.name]
	if expression.Kind == unstable.ArrayTable {
		if found == nil {
			found = parent.add(last.name, &node{key: last.offset, value: header})
		}
		l.current = &node{key: last.offset, value: header, defined: true}
		found.items = append(found.items, l.current)
		return nil
	}
	if found == nil {
		found = parent.add(last.name, &node{})
	} else if found.defined {
		line, _ := l.source.position(found.key)
		l.problems = append(l.problems, l.source.problem(header, "%s is already defined in line %d", tableName(parts), line))
		l.skipFrom = header
		l.current = &node{}
		return nil
	}
	found.key, found.value, found.defined = last.offset, header, true
	l.current = found
	return nil
}

func tableName(parts []keyPart) string {
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = part.name
	}
	if len(names) == 3 && names[0] == tableJobs {
		return "job " + strings.Join(names[1:], ".")
	}
	return "table [" + strings.Join(names, ".") + "]"
}

// descend finds or makes the tables that a dotted key leads through. The last
// item stands for an array of tables.
func (l *locator) descend(from *node, parts []keyPart) *node {
	for _, part := range parts {
		next := from.entries[part.name]
		if next == nil {
			next = from.add(part.name, &node{key: part.offset, value: part.offset})
		}
		if next.inline {
			line, _ := l.source.position(next.key)
			l.problems = append(l.problems, l.source.problem(part.offset,
				"%q is an inline table, complete in line %d: nothing can be added to it", part.name, line))
		}
		if len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		from = next
	}
	return from
}

// keyValue notes a key and its value in a table. Top says that it stands on
// lines of its own.
func (l *locator) keyValue(table *node, expression *unstable.Node, top bool, depth int) error {
	parts, err := l.keyOf(expression, depth)
	if err != nil {
		return err
	}
	last, deeper := parts[len(parts)-1], depth+len(parts)
	parent := l.descend(table, parts[:len(parts)-1])
	// The tables within a dotted key are the key's: no header may follow.
	for between := table; between != parent; {
		between = l.descend(between, parts[:1])
		between.defined = true
		parts = parts[1:]
	}
	value := &node{key: last.offset, value: l.valueOffset(last.offset, expression), defined: true}
	if found := parent.entries[last.name]; found != nil {
		line, _ := l.source.position(found.key)
		l.problems = append(l.problems, l.source.problem(last.offset, "key %q is already set in line %d", last.name, line))
		if top {
			l.blank(int(expression.Raw.Offset), int(expression.Raw.Offset+expression.Raw.Length))
		}
		l.stuck = l.stuck || !top
	} else {
		parent.add(last.name, value)
	}
	value.inline = expression.Value().Kind == unstable.InlineTable
	return l.within(value, expression.Value(), deeper)
}

// valueOffset is where the value after a key starts: the syntax tree knows it
// of scalars only.
func (l *locator) valueOffset(key int, expression *unstable.Node) int {
	if raw := expression.Value().Raw; raw.Length > 0 {
		return int(raw.Offset)
	}
	iterator := expression.Key()
	end := key
	for iterator.Next() {
		end = int(iterator.Node().Raw.Offset + iterator.Node().Raw.Length)
	}
	rest := l.source.text[end:]
	return len(l.source.text) - len(bytes.TrimLeft(rest, " \t="))
}

// within notes what a list or an inline table holds.
func (l *locator) within(n *node, value *unstable.Node, depth int) error {
	if depth > maxDepth {
		return l.tooDeep(n.value)
	}
	children := value.Children()
	switch value.Kind {
	case unstable.InlineTable:
		for children.Next() {
			if err := l.keyValue(n, children.Node(), false, depth); err != nil {
				return err
			}
		}
	case unstable.Array:
		for children.Next() {
			offset := l.itemOffset(children.Node(), n.value, maxDepth-depth)
			item := &node{key: offset, value: offset}
			n.items = append(n.items, item)
			if err := l.within(item, children.Node(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// itemOffset is where an item of a list starts, found from the first thing in
// it; that of an empty list or table is unknown, and that of its list stands in.
func (l *locator) itemOffset(item *unstable.Node, list, depth int) int {
	open := byte('[')
	switch {
	case item.Raw.Length > 0:
		return int(item.Raw.Offset)
	case item.Kind == unstable.InlineTable:
		open = '{'
	}
	child := item.Child()
	if !child.Valid() || depth <= 0 {
		return list
	}
	inner := l.itemOffset(child, list, depth-1)
	before := bytes.TrimRight(l.source.text[:inner], " \t\r\n")
	if len(before) > 0 && before[len(before)-1] == open {
		return len(before) - 1
	}
	return inner
}

func (l *locator) blankSkipped(end int) {
	if l.skipFrom >= 0 {
		l.blank(l.skipFrom, end)
		l.skipFrom = -1
	}
}

func (l *locator) blank(from, to int) {
	for i, c := range l.cleaned[from:to] {
		if c != '\n' && c != '\r' {
			l.cleaned[from+i] = ' '
		}
	}
}
