package images

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/job"
)

// recipeVersion is part of every key. It changes when a new version of the
// program makes visibly other pictures and they are to replace the old ones.
const recipeVersion = 1

// Kinds of recipes.
const (
	kindPhoto = "photo"
	kindLogo  = "logo"
)

// vectorName is the name of the variant that is an SVG: there is one of each logo that is one.
const vectorName = "vector"

// recipe says what is made of an upload. Its hash is part of every key.
type recipe struct {
	Version  int              `json:"version"`
	Kind     string           `json:"kind"` // photo or logo
	Variants []imaging.Wanted `json:"variants"`
}

// contentType is that of a format.
func contentType(format imaging.Format) string {
	if format == imaging.SVG {
		return "image/svg+xml"
	}
	return "image/" + strings.ToLower(string(format))
}

// extension of the keys of a format.
func extension(format imaging.Format) string {
	if format == imaging.JPEG {
		return ".jpg"
	}
	return "." + strings.ToLower(string(format))
}

// Manifest says what was made of an upload. It holds no time and nothing else
// that would differ when it is made again.
type Manifest struct {
	// Format names this layout: dendra.image-variants/1.
	Format string `json:"format"`
	// Source is the upload.
	Source Source `json:"source"`
	// Look says how the picture looks, in a few bytes.
	Look *imaging.Look `json:"look"`
	// Recipe says what was to be made.
	Recipe json.RawMessage `json:"recipe"`
	// Variants are in the order of the recipe. Last comes the sanitised SVG, if the upload is one.
	Variants []Variant `json:"variants"`
	// SrcSet has, by content type, what a page writes as srcset: keys and widths of the
	// variants that show the whole picture.
	SrcSet map[string]string `json:"srcset,omitempty"`
	// Notes say what of the upload the variants do not show as its maker meant it.
	Notes []string `json:"notes,omitempty"`
}

// Source describes an upload.
type Source struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	// ETag is that of the object when its manifest was written.
	ETag   string `json:"etag"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Format is JPEG, PNG, GIF, WebP, HEIC, AVIF or SVG.
	Format string `json:"format"`
	// Width and Height are those of the upright picture, in pixels. An SVG, which has any size,
	// counts as one of 4096 pixels on its longer side.
	Width  int `json:"width"`
	Height int `json:"height"`
	// Orientation is the value of the EXIF tag, 1 when there is none.
	Orientation int `json:"orientation"`
	// Taken is when the photo was taken, as EXIF says: 2006-01-02T15:04:05, with an offset from
	// UTC as +02:00 if there is one.
	Taken string `json:"taken,omitempty"`
	// Copyright and Artist are those of EXIF, if the spec asks for rights.
	Copyright string `json:"copyright,omitempty"`
	Artist    string `json:"artist,omitempty"`
}

// Variant describes a stored variant.
type Variant struct {
	Name        string `json:"name"`
	Key         string `json:"key"`
	ContentType string `json:"content_type"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Bytes       int64  `json:"bytes"`
	SHA256      string `json:"sha256"`
}

// Output is the Output of a run's [job.Result].
type Output struct {
	// Bucket holds the manifest and the variants.
	Bucket string `json:"bucket"`
	// Manifest is the key of the manifest.
	Manifest string `json:"manifest"`
	// Variants are in the order of the recipe.
	Variants []Variant `json:"variants"`
	// Notes are those of the manifest.
	Notes []string `json:"notes,omitempty"`
}

const (
	manifestFormat    = "dendra.image-variants/1"
	manifestExtension = ".json"
)

// srcSet is the SrcSet of a manifest.
func (r recipe) srcSet(variants []Variant) map[string]string {
	parts := map[string][]string{}
	for i, w := range r.Variants {
		v := variants[i]
		// Small uploads make several variants of one width.
		if width := fmt.Sprintf(" %dw", v.Width); w.Fit == imaging.Inside && !slices.ContainsFunc(parts[v.ContentType], func(part string) bool { return strings.HasSuffix(part, width) }) {
			parts[v.ContentType] = append(parts[v.ContentType], v.Key+width)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	sets := map[string]string{}
	for format, list := range parts {
		sets[format] = strings.Join(list, ", ")
	}
	return sets
}

// layout holds the keys of what is made of one upload:
//
//	<prefix>/<hash of the content>/<hash of the recipe>-<variant>.<extension>
//	<prefix>/<hash of the content>/<hash of the recipe>-<hash of the address>.json
//
// Equal content under two addresses shares its variants; each address has a
// manifest of its own.
type layout struct {
	folder, recipe, address string
}

func (t task) layout(contentHash string) layout {
	return layout{
		folder:  t.prefix + "/" + contentHash[:32],
		recipe:  recipeHash(job.EncodeJSON(t.recipe)),
		address: addressHash(t.bucket, t.key),
	}
}

func (l layout) variant(w imaging.Wanted) string {
	return l.folder + "/" + l.recipe + "-" + w.Name + extension(w.Format)
}

func (l layout) manifest() string {
	return l.folder + "/" + l.recipe + "-" + l.address + manifestExtension
}
