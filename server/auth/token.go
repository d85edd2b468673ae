package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// tokenPrefix tells tokens of this file from those of an issuer, and lets scanners of
// source code find them.
const tokenPrefix = "dendra_jobs_"

// NewToken makes a token of 256 random bits.
func NewToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // It never fails.
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

// Hash is what the file keeps of a token. A slow hash would gain nothing: it makes guesses
// of passwords dear, and nobody guesses 256 random bits. A fast one costs each call nothing.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Line is the line for the file that lets a token in. The zero time means that it does not
// expire.
func Line(name string, role verbs.Role, hash string, expires time.Time) string {
	expiry := ""
	if !expires.IsZero() {
		expiry = ", expires = " + expires.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("tokens.%s = { role = %q, sha256 = %q%s }", tomlKey(name), role, hash, expiry)
}

// tomlKey writes a name as a key of TOML.
func tomlKey(name string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !bare(r) }) {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}
