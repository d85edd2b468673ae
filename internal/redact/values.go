package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// leastEncoded is how long an encoded form has to be to be looked for: a shorter one may
// be a part of a word.
const leastEncoded = 8

// Values are secrets that are known. They are found as they are, within JSON, escaped for
// URLs, and in base64, wherever they begin in the text that was encoded. The zero one knows
// none. Its methods may be called from several goroutines.
type Values struct {
	mu       sync.RWMutex
	forms    []string
	replacer *strings.Replacer
}

// Of makes those of some values. An empty one is left out.
func Of(values ...string) *Values {
	v := &Values{}
	for _, value := range values {
		v.Add(value)
	}
	return v
}

// Add takes a further value.
func (v *Values) Add(value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if value == "" || slices.Contains(v.forms, value) {
		return
	}
	v.forms = append(v.forms, formsOf(value)...)
	// The first that fits at a place is taken: the longest has to be before its parts.
	slices.SortFunc(v.forms, func(a, b string) int { return len(b) - len(a) })
	v.forms = slices.Compact(v.forms)
	var pairs []string
	for _, form := range v.forms {
		pairs = append(pairs, form, redacted)
	}
	v.replacer = strings.NewReplacer(pairs...)
}

// escape is a percent-encoded byte.
var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// formsOf are all forms in which a value is looked for.
func formsOf(value string) []string {
	forms := []string{value}
	add := func(form string) {
		if len(form) >= leastEncoded && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	escaped, _ := json.Marshal(value) // A string always can be.
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	for _, quoted := range []string{string(escaped), strings.TrimSpace(plain.String()), strconv.Quote(value)} {
		add(quoted[1 : len(quoted)-1])
	}
	for _, form := range []string{url.QueryEscape(value), url.PathEscape(value)} {
		add(form)
		add(escape.ReplaceAllStringFunc(form, strings.ToLower))
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := encoding.EncodeToString([]byte(value))
		add(whole)
		add(strings.TrimRight(whole, "="))
		for shift := range 3 {
			// What is before the value shifts it. The letters that hold bits of others are left out.
			shifted := encoding.EncodeToString(append(make([]byte, shift), value...))
			add(shifted[(shift*8+5)/6 : (shift+len(value))*8/6])
		}
	}
	return forms
}

// Text takes the values out of a text.
func (v *Values) Text(text string) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.replacer == nil {
		return text
	}
	return v.replacer.Replace(text)
}

// JSON takes the values out of the names and texts of JSON. What has none stays as it is.
func (v *Values) JSON(text json.RawMessage) json.RawMessage {
	v.mu.RLock()
	none := v.replacer == nil
	v.mu.RUnlock()
	if none || len(text) == 0 || !bytes.ContainsRune(text, '\\') && v.Text(string(text)) == string(text) {
		return text
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return json.RawMessage(v.Text(string(text)))
	}
	changed := false
	value = v.within(value, &changed)
	if !changed {
		return text
	}
	cleaned, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return cleaned
}

// within takes the values out of a decoded value, and notes whether there were any.
func (v *Values) within(value any, changed *bool) any {
	text := func(text string) string {
		cleaned := v.Text(text)
		*changed = *changed || cleaned != text
		return cleaned
	}
	switch value := value.(type) {
	case map[string]any:
		cleaned := make(map[string]any, len(value))
		for key, part := range value {
			cleaned[text(key)] = v.within(part, changed)
		}
		return cleaned
	case []any:
		for i, part := range value {
			value[i] = v.within(part, changed)
		}
	case string:
		return text(value)
	case json.Number:
		if cleaned := text(value.String()); cleaned != value.String() {
			return cleaned
		}
	}
	return value
}
