package openapi

import (
	"regexp"
	"strings"
)

// Lines of a contract, as buf formats it.
var (
	packageLine = regexp.MustCompile(`^package ([\w.]+);`)
	blockLine   = regexp.MustCompile(`^(message|enum|service|oneof|rpc) (\w+)`)
	fieldLine   = regexp.MustCompile(`^(?:repeated |optional )?[\w.]+(?:<[\w., ]+>)? (\w+) = \d+`)
	valueLine   = regexp.MustCompile(`^([A-Z][A-Z0-9_]*) = \d+`)
)

// Comments are those of the text of a contract, which descriptors in Go code do not have: by
// the full name of what they stand before. That of a value of an enum begins with the name
// of the enum.
func Comments(text string) map[string]string {
	comments := map[string]string{}
	var scope []string // Names of the blocks around; "" is one that names nothing.
	var above []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "//"); ok {
			above = append(above, strings.TrimSpace(comment))
			continue
		}
		name, block := "", ""
		if found := packageLine.FindStringSubmatch(line); found != nil {
			scope = append(scope, found[1])
		} else if found := blockLine.FindStringSubmatch(line); found != nil {
			if name = found[2]; found[1] != "oneof" {
				block = name
			}
		} else if found := valueLine.FindStringSubmatch(line); found != nil {
			name = found[1]
		} else if found := fieldLine.FindStringSubmatch(line); found != nil {
			name = found[1]
		}
		if name != "" && len(above) > 0 {
			comments[fullName(scope, name)] = strings.Join(above, " ")
		}
		above = nil
		// Options that follow have braces of their own; patterns have both of a pair.
		line = quoted.ReplaceAllString(line, "")
		for range strings.Count(line, "{") - strings.Count(line, "}") {
			scope = append(scope, block)
			block = ""
		}
		for range strings.Count(line, "}") - strings.Count(line, "{") {
			scope = scope[:len(scope)-1]
		}
	}
	return comments
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func fullName(scope []string, name string) string {
	var parts []string
	for _, part := range append(scope[:len(scope):len(scope)], name) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}
