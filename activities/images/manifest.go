package images

import (
	"encoding/json"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
)

// recipeVersion is part of every key. It changes when a new version of the
// program makes visibly other pictures and they are to replace the old ones.
const recipeVersion = 1

// recipe says what is made of an upload. Its hash is part of every key.
type recipe struct {
	Version     int             `json:"version"`
	Kind        string          `json:"kind"` // "photo" or "logo"
	ContentType string          `json:"content_type"`
	Fit         string          `json:"fit"`
	Variants    []recipeVariant `json:"variants"`
}

type recipeVariant struct {
	Name    string `json:"name"`
	Size    int    `json:"size"` // pixels
	Quality int    `json:"quality,omitempty"`
}

const (
	fitSquare = "square" // the largest square in the middle
	fitInside = "inside" // the whole picture
)

// task is what is to be made of an upload.
func (r recipe) task() imaging.Task {
	var t imaging.Task
	for _, v := range r.Variants {
		t.Outputs = append(t.Outputs, r.wanted(v))
	}
	return t
}

func (r recipe) wanted(v recipeVariant) imaging.Wanted {
	w := imaging.Wanted{Name: v.Name, Width: v.Size, Height: v.Size, Fit: imaging.Inside, Format: imaging.JPEG, Quality: v.Quality}
	if r.Fit == fitSquare {
		w.Fit = imaging.Cover
	}
	if r.ContentType == "image/png" {
		w.Format = imaging.PNG
	}
	return w
}

func (r recipe) extension() string {
	if r.ContentType == "image/png" {
		return ".png"
	}
	return ".jpg"
}

// Manifest says what was made of an upload. It holds no time and nothing else
// that would differ when it is made again.
type Manifest struct {
	// Format names this layout: dendra.image-variants/1.
	Format string `json:"format"`
	// Source is the upload.
	Source Source `json:"source"`
	// Recipe says what was to be made.
	Recipe json.RawMessage `json:"recipe"`
	// Variants are in the order of the recipe.
	Variants []Variant `json:"variants"`
}

// Source describes an upload.
type Source struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	// ETag is that of the object when its manifest was written.
	ETag   string `json:"etag"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Format is JPEG, PNG, GIF or WebP.
	Format string `json:"format"`
	// Width and Height are those of the upright picture, in pixels.
	Width  int `json:"width"`
	Height int `json:"height"`
	// Orientation is the value of the EXIF tag, 1 when there is none.
	Orientation int `json:"orientation"`
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
}

const manifestFormat = "dendra.image-variants/1"

// layout holds the keys of what is made of one upload:
//
//	<prefix>/<hash of the content>/<hash of the recipe>-<variant>.<extension>
//	<prefix>/<hash of the content>/<hash of the recipe>-<hash of the address>.json
//
// Equal content under two addresses shares its variants; each address has a
// manifest of its own.
type layout struct {
	folder, recipe, address string
	extension               string
}

func (t task) layout(contentHash string) layout {
	return layout{
		folder:    t.prefix + "/" + contentHash[:32],
		recipe:    objects.Hash(job.EncodeJSON(t.recipe))[:8],
		address:   objects.Hash([]byte(t.bucket + "/" + t.key))[:8],
		extension: t.recipe.extension(),
	}
}

func (l layout) variant(name string) string {
	return l.folder + "/" + l.recipe + "-" + name + l.extension
}

func (l layout) manifest() string { return l.folder + "/" + l.recipe + "-" + l.address + ".json" }
