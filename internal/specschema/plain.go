package specschema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

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
	case time.Time:
		return timeText(value)
	case map[string]any:
		plain := make(map[string]any, len(value))
		for key, entry := range value {
			plain[key] = p.plain(entry, append(slices.Clip(path), key))
		}
		return plain
	case []any:
		return plainList(p, value, path)
	case []map[string]any: // an array of TOML tables
		return plainList(p, value, path)
	}
	return p.refuse(path, "a value of type %T has no place in JSON", value)
}

func plainList[E any](p *plainer, list []E, path []string) []any {
	plain := make([]any, len(list))
	for i, item := range list {
		plain[i] = p.plain(item, append(slices.Clip(path), strconv.Itoa(i)))
	}
	return plain
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

// timeText writes a time as it stands in TOML. The TOML decoder marks those
// without an offset by the names of their locations.
func timeText(t time.Time) string {
	switch t.Location().String() {
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	case "date-local":
		return t.Format(time.DateOnly)
	case "time-local":
		return t.Format("15:04:05.999999999")
	}
	return t.Format(time.RFC3339Nano)
}
