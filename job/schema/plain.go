package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dendrascience/dendra-jobs/job"
)

// Plain turns what JSON or TOML decoding gives into what JSON has: maps, lists,
// strings, float64 and int64, bools and null. Dates and times become their
// text. Numbers that JSON cannot write (inf and nan) and values of any other
// type are problems, and null in the result. The value itself is not changed.
func Plain(value any) (any, []job.Problem) {
	var p plainer
	return p.plain(value, nil), p.problems
}

type plainer struct{ problems []job.Problem }

func (p *plainer) plain(value any, path []string) any {
	switch value := value.(type) {
	case nil, bool, string, int64:
		return value
	case int:
		return int64(value)
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return p.refuse(path, "%v is not a number that JSON can hold", value)
		}
		return value
	case json.Number:
		return p.number(value, path)
	case encoding.TextMarshaler: // a date or a time
		text, err := value.MarshalText()
		if err != nil {
			return p.refuse(path, "%s", err)
		}
		return string(text)
	case map[string]any:
		plain := make(map[string]any, len(value))
		for key, entry := range value {
			plain[key] = p.plain(entry, append(slices.Clip(path), key))
		}
		return plain
	case []any:
		plain := make([]any, len(value))
		for i, item := range value {
			plain[i] = p.plain(item, append(slices.Clip(path), strconv.Itoa(i)))
		}
		return plain
	}
	return p.refuse(path, "a value of type %T has no place in JSON", value)
}

func (p *plainer) number(n json.Number, path []string) any {
	if whole, err := n.Int64(); err == nil {
		return whole
	}
	float, err := n.Float64()
	if err != nil {
		return p.refuse(path, "%.60s is too large a number", n.String())
	}
	return float
}

func (p *plainer) refuse(path []string, format string, args ...any) any {
	p.problems = append(p.problems, job.Problem{Path: slices.Clone(path), Message: fmt.Sprintf(format, args...)})
	return nil
}
