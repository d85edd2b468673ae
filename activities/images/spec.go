package images

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// PhotoSpec is the spec of GeneratePhotoVariantsToMinio.
type PhotoSpec struct {
	Bucket       string         `json:"bucket" jsonschema:"description=Bucket of the uploaded photo.,example=uploads,minLength=1"`
	Key          string         `json:"key" jsonschema:"description=Key of the uploaded photo.,example=station.jpg,minLength=1"`
	TargetBucket string         `json:"target_bucket,omitempty" jsonschema:"description=Bucket that the variants are written to.,default=media"`
	Prefix       string         `json:"prefix,omitempty" jsonschema:"description=First part of the keys of the variants.,default=photos"`
	Variants     []PhotoVariant `json:"variants,omitempty" jsonschema:"description=Recipe: the variants to make. Without it: thumb 60 and small 240 and medium 480 and large 1080.,maxItems=16"`
	Quality      int            `json:"quality,omitempty" jsonschema:"description=JPEG quality of variants that set none.,default=82,minimum=1,maximum=100"`
}

// PhotoVariant is one size of a photo: a square, cut out of the middle.
type PhotoVariant struct {
	Name    string `json:"name" jsonschema:"description=Name of the variant and last part of its key: a-z and 0-9 and _.,minLength=1,maxLength=32"`
	Size    int    `json:"size" jsonschema:"description=Width and height in pixels. A smaller photo is not enlarged.,minimum=1,maximum=4096"`
	Quality int    `json:"quality,omitempty" jsonschema:"description=JPEG quality of this variant. Without it: that of the spec.,minimum=1,maximum=100"`
}

// LogoAvatarSpec is the spec of GenerateLogoAvatarVariantsToMinio.
type LogoAvatarSpec struct {
	Bucket       string        `json:"bucket" jsonschema:"description=Bucket of the uploaded logo or avatar.,example=uploads,minLength=1"`
	Key          string        `json:"key" jsonschema:"description=Key of the uploaded logo or avatar.,example=logo.png,minLength=1"`
	TargetBucket string        `json:"target_bucket,omitempty" jsonschema:"description=Bucket that the variants are written to.,default=media"`
	Prefix       string        `json:"prefix,omitempty" jsonschema:"description=First part of the keys of the variants.,default=logos"`
	Variants     []LogoVariant `json:"variants,omitempty" jsonschema:"description=Recipe: the variants to make. Without it: small 64 and medium 128 and large 512.,maxItems=16"`
}

// LogoVariant is one size of a logo or avatar: the whole of it, fitted.
type LogoVariant struct {
	Name string `json:"name" jsonschema:"description=Name of the variant and last part of its key: a-z and 0-9 and _.,minLength=1,maxLength=32"`
	Size int    `json:"size" jsonschema:"description=Longest side in pixels. A smaller picture is not enlarged.,minimum=1,maximum=4096"`
}

// Defaults of both specs.
const (
	defaultBucket      = "media"
	defaultPhotoPrefix = "photos"
	defaultLogoPrefix  = "logos"
	defaultQuality     = 82
	maxSize            = 4096
	maxVariants        = 16
)

func defaultPhotoVariants() []PhotoVariant {
	return []PhotoVariant{
		{Name: "thumb", Size: 60},
		{Name: "small", Size: 240},
		{Name: "medium", Size: 480},
		{Name: "large", Size: 1080},
	}
}

func defaultLogoVariants() []LogoVariant {
	return []LogoVariant{
		{Name: "small", Size: 64},
		{Name: "medium", Size: 128},
		{Name: "large", Size: 512},
	}
}

// Validate checks what spans several fields or a schema cannot say.
func (s *PhotoSpec) Validate() error {
	_, err := s.task()
	return err
}

// Validate checks what spans several fields or a schema cannot say.
func (s *LogoAvatarSpec) Validate() error {
	_, err := s.task()
	return err
}

// task is a spec with its defaults filled in.
type task struct {
	noun         string // what the upload is, for messages
	bucket, key  string
	targetBucket string
	prefix       string
	recipe       recipe
}

func (s *PhotoSpec) task() (task, error) {
	t := task{
		noun: "photo", bucket: s.Bucket, key: s.Key,
		targetBucket: or(s.TargetBucket, defaultBucket),
		prefix:       or(s.Prefix, defaultPhotoPrefix),
		recipe:       recipe{Version: recipeVersion, Kind: "photo", ContentType: "image/jpeg", Fit: fitSquare},
	}
	quality := or(s.Quality, defaultQuality)
	variants := s.Variants
	if len(variants) == 0 {
		variants = defaultPhotoVariants()
	}
	for _, v := range variants {
		t.recipe.Variants = append(t.recipe.Variants, recipeVariant{v.Name, v.Size, or(v.Quality, quality)})
	}
	return t, t.validate()
}

func (s *LogoAvatarSpec) task() (task, error) {
	t := task{
		noun: "logo", bucket: s.Bucket, key: s.Key,
		targetBucket: or(s.TargetBucket, defaultBucket),
		prefix:       or(s.Prefix, defaultLogoPrefix),
		recipe:       recipe{Version: recipeVersion, Kind: "logo", ContentType: "image/png", Fit: fitInside},
	}
	variants := s.Variants
	if len(variants) == 0 {
		variants = defaultLogoVariants()
	}
	for _, v := range variants {
		t.recipe.Variants = append(t.recipe.Variants, recipeVariant{Name: v.Name, Size: v.Size})
	}
	return t, t.validate()
}

func or[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}

var (
	variantName   = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,31}$`)
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)
)

func (t task) validate() error {
	switch {
	case t.bucket == "":
		return errors.New("bucket is empty")
	case t.key == "":
		return errors.New("key is empty")
	case strings.ContainsAny(t.key, "\x00\r\n"):
		return fmt.Errorf("key %q contains control characters", t.key)
	case len(t.prefix) > 256 || !prefixPattern.MatchString(t.prefix):
		return fmt.Errorf("prefix %q: a prefix has parts of letters, digits, '.', '_' and '-', with '/' between them, "+
			"and at most 256 characters", t.prefix)
	case len(t.recipe.Variants) > maxVariants:
		return fmt.Errorf("%d variants are more than the limit of %d", len(t.recipe.Variants), maxVariants)
	}
	seen := map[string]bool{}
	for i, v := range t.recipe.Variants {
		switch {
		case !variantName.MatchString(v.Name):
			return fmt.Errorf("variants[%d]: the name %q is not made of a-z, 0-9 and '_', at most 32 of them", i, v.Name)
		case seen[v.Name]:
			return fmt.Errorf("variants[%d]: the name %q is taken by an earlier variant", i, v.Name)
		case v.Size < 1 || v.Size > maxSize:
			return fmt.Errorf("variants[%d] %s: the size %d is not from 1 to %d pixels", i, v.Name, v.Size, maxSize)
		case t.recipe.Fit == fitSquare && (v.Quality < 1 || v.Quality > 100):
			return fmt.Errorf("variants[%d] %s: the quality %d is not from 1 to 100", i, v.Name, v.Quality)
		}
		seen[v.Name] = true
	}
	return nil
}
