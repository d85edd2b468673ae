// Package payloadcodectest makes files of payload keys for tests.
package payloadcodectest

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Line is a line of a file of keys. An id always has the same key.
func Line(id string) string {
	key := sha256.Sum256([]byte(id))
	return id + " " + base64.StdEncoding.EncodeToString(key[:])
}

// File writes keys, in this order, and gives the path.
func File(t testing.TB, ids ...string) string {
	t.Helper()
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(Line(id) + "\n")
	}
	path := filepath.Join(t.TempDir(), "payload-keys")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
