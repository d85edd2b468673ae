// Package payloadcodec encrypts what Temporal keeps of jobs: inputs, results, heartbeats, memos,
// summaries, and messages of errors. Ids, types, times and search attributes stay readable:
// Temporal searches by them.
package payloadcodec

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// EnvKeys names the environment variable with the path of the file of keys.
const EnvKeys = "DENDRA_PAYLOAD_KEYS"

// keySize is that of AES-256, in bytes.
const keySize = 32

var keyID = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)

// Keys encrypt by the first and decrypt by any. The zero value has none: it encrypts nothing,
// and refuses what is encrypted.
type Keys struct {
	ids   []string // in the order of the file
	byID  map[string]cipher.AEAD
	where string
}

// Read reads a file of keys, one a line: an id of up to 64 characters (letters, digits, '.', '_',
// '-'), a space, and 32 bytes in base64. Empty lines are skipped. Others than the owner and
// the group may have no right to the file. The path "" gives no keys. An error never holds a key.
func Read(path string) (Keys, error) {
	if path == "" {
		return Keys{}, nil
	}
	keys, err := read(path)
	if err != nil {
		return Keys{}, fmt.Errorf("the payload keys of %s: %w", EnvKeys, err)
	}
	return keys, nil
}

func read(path string) (Keys, error) {
	text, err := os.ReadFile(path) //nolint:gosec // The operator names it.
	if err != nil {
		return Keys{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Keys{}, err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return Keys{}, fmt.Errorf("%s has mode %04o, so that every user of the host has a right to it: chmod o= %[1]s", path, mode)
	}
	k := Keys{byID: map[string]cipher.AEAD{}, where: path}
	number := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := k.add(line); err != nil {
			return Keys{}, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
	}
	if len(k.ids) == 0 {
		return Keys{}, fmt.Errorf("%s has no key", path)
	}
	return k, nil
}

// add takes a line of the file.
func (k *Keys) add(line string) error {
	id, text, _ := strings.Cut(line, " ")
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	switch {
	case !keyID.MatchString(id):
		return errors.New("a line has an id of letters, digits, '.', '_' and '-', a space, and the key")
	case err != nil || len(key) != keySize:
		return fmt.Errorf("the key %s is not %d bytes in base64", id, keySize)
	case k.byID[id] != nil:
		return fmt.Errorf("the key %s is there twice", id)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	if k.byID[id], err = cipher.NewGCM(block); err != nil {
		return err
	}
	k.ids = append(k.ids, id)
	return nil
}

// IDs are the ids of the keys. The first one encrypts.
func (k Keys) IDs() []string { return k.ids }

// File is where the keys come from, "" without keys.
func (k Keys) File() string { return k.where }
