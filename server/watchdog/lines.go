package watchdog

import (
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines says where the tables and keys of a file are.
type lines map[string]int

// linesOf finds them in a text that was decoded. Keys of inline tables are on the line of
// the table.
func linesOf(text []byte) lines {
	found := lines{}
	var parser unstable.Parser
	parser.Reset(text)
	var table []string
	for parser.NextExpression() {
		expression := parser.Expression()
		var path []string
		line := 0
		for keys := expression.Key(); keys.Next(); {
			path = append(path, string(keys.Node().Data))
			line = parser.Shape(keys.Node().Raw).Start.Line
		}
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = path
		case unstable.KeyValue:
			path = append(append([]string(nil), table...), path...)
		default:
			continue
		}
		if key := strings.Join(path, "\n"); found[key] == 0 {
			found[key] = line
		}
	}
	return found
}

// of is the line of a key, or of the table that lacks it.
func (l lines) of(path []string) int {
	for n := len(path); n > 0; n-- {
		if line := l[strings.Join(path[:n], "\n")]; line > 0 {
			return line
		}
	}
	return 1
}
