// Package redact takes what looks like a secret out of what is kept or shown.
package redact

import (
	"encoding/json"
	"regexp"
	"strings"
)

// redacted stands for what looks like a secret.
const redacted = "[redacted]"

// reference is how a value that names a secret, and is none, begins.
const reference = "secret://"

// secretKey fits names of values that are secrets.
var secretKey = regexp.MustCompile(`(?i)(passw|passphrase|pwd|secret|token|api_?-?key|access_?-?key|private_?-?key|credential|authorization|bearer|cookie|signature)`)

// secretTexts are secrets within a text, with what stands for them.
var secretTexts = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(://[^/\s:@"]*:)[^/\s@"]+@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`(?i)([?&;][^=&;\s"]*(?:token|key|secret|passw|signature|sig|auth)[^=&;\s"]*=)[^&;\s"]+`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + redacted},
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), redacted},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), redacted},
	{regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`), redacted},
	{regexp.MustCompile(`\bdendra_jobs_[A-Za-z0-9_-]{43}`), redacted},
}

// Text takes secrets out of a text.
func Text(text string) string {
	for _, secret := range secretTexts {
		text = secret.pattern.ReplaceAllString(text, secret.by)
	}
	return text
}

// JSON takes secrets out of JSON.
func JSON(text []byte) json.RawMessage {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	cleaned, err := json.Marshal(clean(value, false))
	if err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return cleaned
}

// clean takes secrets out of a value. secret says that its name is that of one.
func clean(value any, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		change := isChange(v)
		secret = secret || change && secretKey.MatchString(lastOf(v["path"]))
		for key, part := range v {
			isPath := change && key == "path"
			v[key] = clean(part, secret && !isPath || secretKey.MatchString(key))
		}
		if change {
			redactChange(v)
		}
		return v
	case []any:
		for i, part := range v {
			v[i] = clean(part, secret)
		}
		return v
	case string:
		if secret && v != "" && !isReference(v) {
			return redacted
		}
		return Text(v)
	case nil, bool:
		return v
	}
	if secret {
		return redacted
	}
	return value
}

func isReference(text string) bool {
	return strings.HasPrefix(strings.Trim(text, `"`), reference)
}

// isChange reports whether an object is a FieldChange: a path with values as JSON.
func isChange(v map[string]any) bool {
	_, hasPath := v["path"]
	_, hasOld := v["oldValue"]
	_, hasNew := v["newValue"]
	return hasPath && (hasOld || hasNew)
}

// redactChange looks into the values of a FieldChange.
func redactChange(v map[string]any) {
	for _, side := range []string{"oldValue", "newValue"} {
		text, ok := v[side].(string)
		if !ok || !json.Valid([]byte(text)) {
			continue
		}
		v[side] = string(JSON([]byte(text)))
	}
}

// lastOf is the last part of a path such as spec.influx.password.
func lastOf(path any) string {
	text, _ := path.(string)
	return text[strings.LastIndexByte(text, '.')+1:]
}
