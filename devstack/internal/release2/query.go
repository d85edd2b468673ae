package release2

import (
	"cmp"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// query is the query of a find, or of a get within a patch.
type query struct {
	conditions []condition
	sort       order
	limit      int
	skip       int
}

type condition struct {
	key    string
	op     string // "" for equality
	values []any
}

type order struct {
	key        string
	descending bool
}

const (
	defaultLimit = 200
	maxLimit     = 2000
)

var (
	operators = []string{"", "$in", "$ne", "$gt", "$gte", "$lt", "$lte"}
	queryKey  = regexp.MustCompile(`^([^\[\]]+)(?:\[([^\[\]]+)\])?(?:\[\d*\])?$`)
	number    = regexp.MustCompile(`^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$`)
)

func parseQuery(values url.Values) (query, error) {
	q := query{limit: defaultLimit}
	for key, texts := range values {
		parts := queryKey.FindStringSubmatch(key)
		if parts == nil {
			return q, badRequest("Invalid query parameter %s", key)
		}
		name, op := parts[1], parts[2]
		if strings.HasPrefix(name, "$") {
			if err := q.control(name, op, texts[0]); err != nil {
				return q, err
			}
			continue
		}
		if !slices.Contains(operators, op) {
			return q, badRequest("Invalid query parameter %s", op)
		}
		c := condition{key: name, op: op}
		for _, text := range texts {
			c.values = append(c.values, coerceQuery(name, text))
		}
		q.conditions = append(q.conditions, c)
	}
	return q, nil
}

func (q *query) control(name, key, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return badRequest("Invalid query parameter %s", name)
	}
	switch {
	case name == "$limit" && n >= 0:
		q.limit = min(n, maxLimit)
	case name == "$skip" && n >= 0:
		q.skip = n
	case name == "$sort" && key != "":
		q.sort = order{key, n < 0}
	default:
		return badRequest("Invalid query parameter %s", name)
	}
	return nil
}

// coerceQuery makes a boolean or a number of what looks like one, whatever the field
// holds.
func coerceQuery(key, text string) any {
	switch {
	case strings.EqualFold(text, "true"):
		return text == "true"
	case strings.EqualFold(text, "false"):
		return false
	case number.MatchString(text):
		if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && !math.IsInf(n, 0) {
			return n
		}
	}
	last := key[strings.LastIndexByte(key, '.')+1:]
	return coerceString(text, idKey.MatchString(last))
}

func (q query) matches(d document) bool {
	for _, c := range q.conditions {
		if !c.matches(d) {
			return false
		}
	}
	return true
}

func (c condition) matches(d document) bool {
	stored := lookup(d, c.key)
	switch c.op {
	case "", "$in":
		return slices.ContainsFunc(c.values, func(want any) bool { return holds(stored, want) })
	case "$ne":
		return !slices.ContainsFunc(c.values, func(want any) bool { return holds(stored, want) })
	}
	sign, ok := compare(stored, c.values[0])
	switch {
	case !ok:
		return false
	case c.op == "$gt":
		return sign > 0
	case c.op == "$gte":
		return sign >= 0
	case c.op == "$lt":
		return sign < 0
	default:
		return sign <= 0
	}
}

// lookup is the value of a key with dots.
func lookup(d document, key string) any {
	var value any = map[string]any(d)
	for part := range strings.SplitSeq(key, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[part]
	}
	return value
}

// holds reports whether a stored value is the wanted one, or a list with it.
func holds(stored, want any) bool {
	if list, ok := stored.([]any); ok {
		return slices.ContainsFunc(list, func(item any) bool { return holds(item, want) })
	}
	sign, ok := compare(stored, want)
	return ok && sign == 0
}

// compare compares values of one type.
func compare(a, b any) (sign int, ok bool) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), true
		}
	case float64:
		if b, ok := b.(float64); ok {
			return cmp.Compare(a, b), true
		}
	case bool:
		if b, ok := b.(bool); ok {
			return cmp.Compare(truth(a), truth(b)), true
		}
	}
	return 0, false
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// order orders documents, which are in the order of ids.
func (q query) order(documents []document) {
	if q.sort.key == "" {
		return
	}
	slices.SortStableFunc(documents, func(a, b document) int {
		sign, _ := compare(lookup(a, q.sort.key), lookup(b, q.sort.key))
		if q.sort.descending {
			return -sign
		}
		return sign
	})
}

// inOrderOfIDs reports whether the query needs no look at documents to be answered.
func (q query) inOrderOfIDs() bool {
	return len(q.conditions) == 0 && (q.sort == order{} || q.sort == order{key: "_id"})
}
