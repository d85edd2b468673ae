package images

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
)

// Key is a key of the shape that this package makes.
type Key struct {
	// Folder is what the keys of all that was made of one content begin with, without the
	// slash at its end.
	Folder string
	// Prefix is that of the spec, the beginning of the folder.
	Prefix string
	// Recipe is the hash of the recipe, in eight digits.
	Recipe string
	// Address is the hash of the upload's address if this is the key of a manifest, else "".
	Address string
}

var keyShape = regexp.MustCompile(`^((.+)/[0-9a-f]{32})/([0-9a-f]{8})-(?:([0-9a-f]{8})\.json|[a-z0-9][a-z0-9_]{0,31}\.[a-z]{3,5})$`)

// ParseKey reads a key. It reports false for one that this package does not make.
func ParseKey(key string) (Key, bool) {
	found := keyShape.FindStringSubmatch(key)
	if found == nil || found[4] == "" && strings.HasSuffix(key, ".json") {
		return Key{}, false
	}
	return Key{Folder: found[1], Prefix: found[2], Recipe: found[3], Address: found[4]}, true
}

// MaxManifestBytes is more than a manifest has.
const MaxManifestBytes = 64 << 10

// ReadManifest reads a stored manifest. It fails if its key is not that of its content: what it
// says would be said by somebody else.
func ReadManifest(key string, data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("manifest %s cannot be read: %w", key, err)
	}
	var recipe bytes.Buffer
	parsed, ok := ParseKey(key)
	if !ok || m.Format != manifestFormat || len(m.Source.SHA256) != 64 || json.Compact(&recipe, m.Recipe) != nil {
		return Manifest{}, fmt.Errorf("manifest %s is none of this program", key)
	}
	own := layout{folder: parsed.Prefix + "/" + m.Source.SHA256[:32], recipe: recipeHash(recipe.Bytes()), address: addressHash(m.Source.Bucket, m.Source.Key)}
	if own.manifest() != key {
		return Manifest{}, fmt.Errorf("manifest %s does not describe what its key stands for", key)
	}
	return m, nil
}

// Kind is "photo" or "logo".
func (m Manifest) Kind() string {
	var r struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(m.Recipe, &r) // ReadManifest has read it.
	return r.Kind
}

// IsOwn reports whether an object is a variant or manifest as this package stores them.
func IsOwn(info objects.Info) bool {
	key, ok := ParseKey(info.Key)
	if !ok || info.SHA256 == "" {
		return false
	}
	if key.Address != "" {
		return info.ContentType == manifestType && info.CacheControl == changing
	}
	return strings.HasPrefix(info.ContentType, "image/") && info.CacheControl == immutable
}

// RecipeHash is the part of the keys that stands for what the spec asks for, with its defaults.
func (s *PhotoSpec) RecipeHash() string { return recipeHash(job.EncodeJSON(s.task().recipe)) }

// RecipeHash is the part of the keys that stands for what the spec asks for, with its defaults.
func (s *LogoAvatarSpec) RecipeHash() string { return recipeHash(job.EncodeJSON(s.task().recipe)) }

func recipeHash(recipe []byte) string { return objects.Hash(recipe)[:8] }

func addressHash(bucket, key string) string { return objects.Hash([]byte(bucket + "/" + key))[:8] }
