package stacktest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Canary is the value of a secret, to be looked for where it must not be.
type Canary struct {
	Name, Value string
	forms       map[string][]byte // by name of the form
}

// NewCanary makes a random one, whose name is in it. Each encoding changes some of its characters.
func NewCanary(t *testing.T, name string) Canary {
	t.Helper()
	random := make([]byte, 12)
	_, err := rand.Read(random)
	require.NoError(t, err)
	c := Canary{Name: name, Value: name + "/+&%=" + hex.EncodeToString(random)}
	quoted, err := json.Marshal(c.Value)
	require.NoError(t, err)
	c.forms = map[string][]byte{
		"plain": []byte(c.Value), "JSON": bytes.Trim(quoted, `"`),
		"URL query": []byte(url.QueryEscape(c.Value)), "URL path": []byte(url.PathEscape(c.Value)),
	}
	// What is before it in a text, such as a user's name, shifts its place in base64.
	for shift := range 3 {
		shifted := append(make([]byte, shift), c.Value...)
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
			whole := encoding.EncodeToString(shifted)
			c.forms[fmt.Sprintf("%s, shifted by %d", name, shift)] = []byte(whole[(shift*8+5)/6 : len(shifted)*8/6])
		}
	}
	return c
}

// In gives the forms in which it is in a text.
func (c Canary) In(text []byte) []string {
	var found []string
	for name, form := range c.forms {
		if bytes.Contains(text, form) {
			found = append(found, name)
		}
	}
	return found
}

// EachFile gives the files of a stack that has ended, by the name of their server.
func (s *Stack) EachFile(t *testing.T, look func(server string, content []byte)) {
	t.Helper()
	files := os.DirFS(s.Data)
	require.NoError(t, fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		server, _, _ := strings.Cut(path, "/")
		look(server, content)
		return err
	}))
}
