package images

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// PhotoSpec is the spec of GeneratePhotoVariantsToMinio.
type PhotoSpec struct {
	Bucket       string         `json:"bucket" minLength:"1" example:"uploads" help:"bucket of the uploaded photo"`
	Key          string         `json:"key" minLength:"1" pattern:"^[^\\x00\\r\\n]*$" example:"station.jpg" help:"key of the uploaded photo"`
	TargetBucket string         `json:"target_bucket,omitempty" default:"media" help:"bucket that the variants are written to"`
	Prefix       string         `json:"prefix,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$" maxLength:"256" default:"photos" help:"first part of the keys of the variants"`
	Ladder       Ladder         `json:"ladder,omitempty" enum:"default,release2,responsive" help:"the variants to make, by the name of a set: docs/images.md; defaults to default"`
	Variants     []PhotoVariant `json:"variants,omitempty" maxItems:"16" help:"the variants to make, one by one, instead of a ladder"`
	Quality      int            `json:"quality,omitempty" minimum:"1" maximum:"100" default:"82" help:"quality of variants that set none"`
	Rights       bool           `json:"rights,omitempty" help:"names copyright and artist of the photo, as its EXIF has them, in the manifest"`
}

// PhotoVariant is one size of a photo: a square of it, or what width and height say.
type PhotoVariant struct {
	Name    string          `json:"name" pattern:"^[a-z0-9][a-z0-9_]{0,31}$" help:"name of the variant and last part of its key"`
	Size    int             `json:"size,omitempty" minimum:"1" maximum:"4096" help:"width and height of a square, cut out of the middle"`
	Width   int             `json:"width,omitempty" minimum:"1" maximum:"4096" help:"most pixels of a row"`
	Height  int             `json:"height,omitempty" minimum:"1" maximum:"4096" help:"most pixels of a column"`
	Fit     imaging.Fit     `json:"fit,omitempty" enum:"inside,cover" help:"inside (the default) shows all of the photo within width and height, cover fills both and cuts off the rest"`
	Focus   *Focus          `json:"focus,omitempty" help:"what cover and size keep in the picture; defaults to the middle"`
	FocusOn imaging.FocusOn `json:"focus_on,omitempty" enum:"entropy" help:"what cover and size keep, instead of a point: entropy is the part with the most detail"`
	Format  string          `json:"format,omitempty" enum:"jpeg,webp" help:"jpeg (the default) or webp"`
	Quality int             `json:"quality,omitempty" minimum:"1" maximum:"100" help:"quality of this variant; without it, that of the spec"`
}

// Focus is a point of a photo: 0, 0 is its upper left corner, 1, 1 the lower right one.
type Focus struct {
	X float64 `json:"x" minimum:"0" maximum:"1" help:"part of the width that is left of it"`
	Y float64 `json:"y" minimum:"0" maximum:"1" help:"part of the height that is above it"`
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

// Ladder names a set of variants.
type Ladder string

// ladders are the sets of variants of photos. The one of Release 2 is that of its photos.
func ladders() map[Ladder][]PhotoVariant {
	return map[Ladder][]PhotoVariant{
		"default": {
			{Name: "thumb", Size: 60},
			{Name: "small", Size: 240},
			{Name: "medium", Size: 480},
			{Name: "large", Size: 1080},
		},
		"release2": {
			{Name: "thumb", Size: 60}, {Name: "thumb_2x", Size: 120},
			{Name: "small", Size: 240}, {Name: "small_2x", Size: 480},
			{Name: "medium", Size: 480}, {Name: "medium_2x", Size: 960},
			{Name: "large", Size: 1080},
		},
		"responsive": {
			{Name: "w320", Width: 320}, {Name: "w640", Width: 640}, {Name: "w1024", Width: 1024}, {Name: "w1600", Width: 1600}, {Name: "w2048", Width: 2048},
			{Name: "thumb", Size: 120},
		},
	}
}

func defaultLogoVariants() []LogoVariant {
	return []LogoVariant{
		{Name: "small", Size: 64},
		{Name: "medium", Size: 128},
		{Name: "large", Size: 512},
	}
}

// Validate reports variants of one name, of bounds that contradict each other, and in the bucket
// of the upload.
func (s *PhotoSpec) Validate() error {
	if s.Ladder != "" && len(s.Variants) > 0 {
		return errors.New("ladder: it names the variants, and variants lists others: give one of them")
	}
	for i, v := range s.Variants {
		if err := v.check(); err != nil {
			return fmt.Errorf("variants.%d: %w", i, err)
		}
	}
	return s.task().validate()
}

// Validate reports variants of one name, and variants in the bucket of the upload.
func (s *LogoAvatarSpec) Validate() error { return s.task().validate() }

// task is what both specs ask for.
type task struct {
	noun         string // what the upload is, for messages
	bucket, key  string
	targetBucket string
	prefix       string
	rights       bool
	recipe       recipe
}

func (s *PhotoSpec) task() task {
	t := task{
		noun: "photo", bucket: s.Bucket, key: s.Key, targetBucket: s.TargetBucket, prefix: s.Prefix, rights: s.Rights,
		recipe: recipe{Version: recipeVersion, Kind: kindPhoto},
	}
	variants := s.Variants
	if len(variants) == 0 {
		variants = ladders()[cmp.Or(s.Ladder, "default")]
	}
	for _, v := range variants {
		t.recipe.Variants = append(t.recipe.Variants, v.wanted(s.Quality))
	}
	return t
}

// wanted is what is to be made. A variant that [PhotoVariant.check] refuses means nothing.
func (v PhotoVariant) wanted(quality int) imaging.Wanted {
	w := imaging.Wanted{
		Name: v.Name, Width: cmp.Or(v.Size, v.Width), Height: cmp.Or(v.Size, v.Height), Fit: cmp.Or(v.Fit, imaging.Inside),
		FocusOn: v.FocusOn, Format: imaging.JPEG, Quality: cmp.Or(v.Quality, quality),
	}
	if v.Size > 0 {
		w.Fit = imaging.Cover
	}
	if v.Format == "webp" {
		w.Format = imaging.WebP
	}
	if v.Focus != nil {
		w.Focus = &imaging.Point{X: v.Focus.X, Y: v.Focus.Y}
	}
	return w
}

// check reports bounds that contradict each other.
func (v PhotoVariant) check() error {
	switch {
	case v.Size > 0 && (v.Width > 0 || v.Height > 0 || v.Fit != ""):
		return errors.New("size is of a square, and goes with neither width, height nor fit")
	case v.Size == 0 && v.Width == 0 && v.Height == 0:
		return errors.New("size, or width or height, is missing")
	case v.Fit == imaging.Cover && (v.Width == 0 || v.Height == 0):
		return errors.New("cover needs width and height")
	case v.Focus != nil && v.FocusOn != "":
		return errors.New("focus names a point, and focus_on has it found: give one of them")
	case (v.Focus != nil || v.FocusOn != "") && v.Size == 0 && v.Fit != imaging.Cover:
		return errors.New("focus is for size and cover: inside cuts nothing off")
	}
	return nil
}

func (s *LogoAvatarSpec) task() task {
	t := task{
		noun: "logo", bucket: s.Bucket, key: s.Key, targetBucket: s.TargetBucket, prefix: s.Prefix,
		recipe: recipe{Version: recipeVersion, Kind: kindLogo},
	}
	variants := s.Variants
	if len(variants) == 0 {
		variants = defaultLogoVariants()
	}
	for _, v := range variants {
		t.recipe.Variants = append(t.recipe.Variants,
			imaging.Wanted{Name: v.Name, Width: v.Size, Height: v.Size, Fit: imaging.Inside, Format: imaging.PNG})
	}
	return t
}

func (t task) validate() error {
	if t.bucket == t.targetBucket {
		return fmt.Errorf("target_bucket: %s is the bucket of the upload, and variants are written to another one", t.bucket)
	}
	seen := map[string]bool{}
	if t.recipe.Kind == kindLogo {
		seen[vectorName] = true
	}
	for i, v := range t.recipe.Variants {
		if seen[v.Name] {
			return fmt.Errorf("variants.%d: the name %q is taken", i, v.Name)
		}
		seen[v.Name] = true
	}
	return nil
}
