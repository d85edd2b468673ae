package images

import (
	"cmp"
	"fmt"
)

// PhotoSpec is the spec of GeneratePhotoVariantsToMinio.
type PhotoSpec struct {
	Bucket       string         `json:"bucket" minLength:"1" example:"uploads" help:"bucket of the uploaded photo"`
	Key          string         `json:"key" minLength:"1" pattern:"^[^\\x00\\r\\n]*$" example:"station.jpg" help:"key of the uploaded photo"`
	TargetBucket string         `json:"target_bucket,omitempty" default:"media" help:"bucket that the variants are written to"`
	Prefix       string         `json:"prefix,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$" maxLength:"256" default:"photos" help:"first part of the keys of the variants"`
	Variants     []PhotoVariant `json:"variants,omitempty" maxItems:"16" help:"the variants to make; without it: thumb 60, small 240, medium 480, large 1080"`
	Quality      int            `json:"quality,omitempty" minimum:"1" maximum:"100" default:"82" help:"JPEG quality of variants that set none"`
}

// PhotoVariant is one size of a photo: a square, cut out of the middle.
type PhotoVariant struct {
	Name    string `json:"name" pattern:"^[a-z0-9][a-z0-9_]{0,31}$" help:"name of the variant and last part of its key"`
	Size    int    `json:"size" minimum:"1" maximum:"4096" help:"width and height in pixels; a smaller photo is not enlarged"`
	Quality int    `json:"quality,omitempty" minimum:"1" maximum:"100" help:"JPEG quality of this variant; without it, that of the spec"`
}

// LogoAvatarSpec is the spec of GenerateLogoAvatarVariantsToMinio.
type LogoAvatarSpec struct {
	Bucket       string        `json:"bucket" minLength:"1" example:"uploads" help:"bucket of the uploaded logo or avatar"`
	Key          string        `json:"key" minLength:"1" pattern:"^[^\\x00\\r\\n]*$" example:"logo.png" help:"key of the uploaded logo or avatar"`
	TargetBucket string        `json:"target_bucket,omitempty" default:"media" help:"bucket that the variants are written to"`
	Prefix       string        `json:"prefix,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$" maxLength:"256" default:"logos" help:"first part of the keys of the variants"`
	Variants     []LogoVariant `json:"variants,omitempty" maxItems:"16" help:"the variants to make; without it: small 64, medium 128, large 512"`
}

// LogoVariant is one size of a logo or avatar: the whole of it, fitted.
type LogoVariant struct {
	Name string `json:"name" pattern:"^[a-z0-9][a-z0-9_]{0,31}$" help:"name of the variant and last part of its key"`
	Size int    `json:"size" minimum:"1" maximum:"4096" help:"longest side in pixels; a smaller picture is not enlarged"`
}

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

// Validate reports variants of one name, and variants in the bucket of the upload.
func (s *PhotoSpec) Validate() error { return s.task().validate() }

// Validate reports variants of one name, and variants in the bucket of the upload.
func (s *LogoAvatarSpec) Validate() error { return s.task().validate() }

// task is what both specs ask for.
type task struct {
	noun         string // what the upload is, for messages
	bucket, key  string
	targetBucket string
	prefix       string
	recipe       recipe
}

func (s *PhotoSpec) task() task {
	t := task{
		noun: "photo", bucket: s.Bucket, key: s.Key, targetBucket: s.TargetBucket, prefix: s.Prefix,
		recipe: recipe{Version: recipeVersion, Kind: "photo", ContentType: "image/jpeg", Fit: fitSquare},
	}
	variants := s.Variants
	if len(variants) == 0 {
		variants = defaultPhotoVariants()
	}
	for _, v := range variants {
		t.recipe.Variants = append(t.recipe.Variants, recipeVariant{v.Name, v.Size, cmp.Or(v.Quality, s.Quality)})
	}
	return t
}

func (s *LogoAvatarSpec) task() task {
	t := task{
		noun: "logo", bucket: s.Bucket, key: s.Key, targetBucket: s.TargetBucket, prefix: s.Prefix,
		recipe: recipe{Version: recipeVersion, Kind: "logo", ContentType: "image/png", Fit: fitInside},
	}
	variants := s.Variants
	if len(variants) == 0 {
		variants = defaultLogoVariants()
	}
	for _, v := range variants {
		t.recipe.Variants = append(t.recipe.Variants, recipeVariant{Name: v.Name, Size: v.Size})
	}
	return t
}

func (t task) validate() error {
	if t.bucket == t.targetBucket {
		return fmt.Errorf("target_bucket: %s is the bucket of the upload, and variants are written to another one", t.bucket)
	}
	seen := map[string]bool{}
	for i, v := range t.recipe.Variants {
		if seen[v.Name] {
			return fmt.Errorf("variants.%d: the name %q is taken by an earlier variant", i, v.Name)
		}
		seen[v.Name] = true
	}
	return nil
}
