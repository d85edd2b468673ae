package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/redact"
)

const value = `p/+&%="<ü>secret`

// TestValuesInAllForms: no form of a secret is left, nor what would give it back.
func TestValuesInAllForms(t *testing.T) {
	t.Parallel()
	quoted, err := json.Marshal(map[string]string{"password": value})
	require.NoError(t, err)
	values := redact.Of("", value)
	for name, text := range map[string]string{
		"plain": "the token is " + value + ".", "twice": value + value, "JSON": string(quoted),
		"query": "?a=" + url.QueryEscape(value), "path": "/" + url.PathEscape(value), "small letters": "/" + strings.ToLower(url.PathEscape(value)),
	} {
		require.Contains(t, values.Text(text), "[redacted]", name)
		require.NotContains(t, values.Text(text), "secret", name)
	}
	for _, before := range []string{"", "u", "u:", "us:", "user:"} {
		for name, encoding := range map[string]*base64.Encoding{
			"std": base64.StdEncoding, "url": base64.URLEncoding, "raw std": base64.RawStdEncoding, "raw url": base64.RawURLEncoding,
		} {
			for _, after := range []string{"", "\n", "--"} {
				text := values.Text("Basic " + encoding.EncodeToString([]byte(before+value+after)) + " was refused")
				require.Regexp(t, `^Basic [A-Za-z0-9_+/-]{0,7}\[redacted\][A-Za-z0-9_+/=-]{0,5} was refused$`, text, "%s after %q before %q", name, before, after)
			}
		}
	}
	require.Equal(t, "nothing to hide", values.Text("nothing to hide"))
}

// TestValuesInJSON: names, texts and numbers, and nothing else changes.
func TestValuesInJSON(t *testing.T) {
	t.Parallel()
	values := redact.Of("hunter2", "4711")
	for text, want := range map[string]string{
		`{"b": 12345678901234567890.10, "a": "\u00e9"}`:                  `{"b": 12345678901234567890.10, "a": "\u00e9"}`,
		`{"b":[{"hunter2":"x"},"a \u0068unter2"],"n":1.50}`:              `{"b":[{"[redacted]":"x"},"a [redacted]"],"n":1.50}`,
		`[4711, true, null]`:                                             `["[redacted]",true,null]`,
		`"` + base64.StdEncoding.EncodeToString([]byte("hunter2")) + `"`: `"[redacted]"`,
		`{"broken": "hunter2`:                                            `{"broken": "[redacted]`,
		``:                                                               ``,
	} {
		require.Equal(t, want, string(values.JSON(json.RawMessage(text))), text)
	}
	require.Equal(t, `"hunter2"`, string((&redact.Values{}).JSON(json.RawMessage(`"hunter2"`))))
}
