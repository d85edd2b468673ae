package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Names of the job types.
const (
	LogoAvatarVariantsType = "GenerateLogoAvatarVariantsToMinio"
	PhotoVariantsType      = "GeneratePhotoVariantsToMinio"
)

// PhotoVariants is the job type GeneratePhotoVariantsToMinio. Store and pool may be
// nil where only the description of the type is used.
func PhotoVariants(store *objects.Store, pictures *process.Pool) job.Type {
	return job.NewType(PhotoVariantsType, job.WorkerBackend,
		"Makes JPEG or WebP variants of an uploaded photo, upright and without its metadata.",
		func(ctx context.Context, run job.Run, spec PhotoSpec) (job.Result, error) {
			return generate(ctx, run, store, pictures, spec.task())
		}, job.ModeOneShot, job.ModeQueued)
}

// LogoAvatarVariants is the job type GenerateLogoAvatarVariantsToMinio. Store
// and pool may be nil where only the description of the type is used.
func LogoAvatarVariants(store *objects.Store, pictures *process.Pool) job.Type {
	return job.NewType(LogoAvatarVariantsType, job.WorkerBackend,
		"Makes PNG variants of an uploaded logo or avatar: fitted, never cropped, with its transparency.",
		func(ctx context.Context, run job.Run, spec LogoAvatarSpec) (job.Result, error) {
			return generate(ctx, run, store, pictures, spec.task())
		}, job.ModeOneShot, job.ModeQueued)
}

// generation is the work of one run.
type generation struct {
	task
	run      job.Run
	store    *objects.Store
	pictures *process.Pool
	keys     layout
	source   Source
	wanted   []imaging.Wanted // of the recipe, and the vector
	vector   []byte           // the sanitised text of an SVG
	notes    []string
	data     []byte // of the source

	stored   map[string]Variant // by name
	written  int
	manifest []byte        // that is stored, nil if none is
	look     *imaging.Look // nil if nobody has looked yet
}

// working bounds the uploads that are in this process's memory at once. Twice as many as are
// decoded, since the others wait for the store.
var working = make(chan struct{}, 2*runtime.NumCPU())

func generate(ctx context.Context, run job.Run, store *objects.Store, pictures *process.Pool, t task) (job.Result, error) {
	select {
	case working <- struct{}{}:
		defer func() { <-working }()
	case <-run.Stopping():
		return job.Result{}, job.ErrStopped
	case <-ctx.Done():
		return job.Result{}, ctx.Err()
	}
	g := &generation{task: t, run: run, store: store, pictures: pictures, stored: map[string]Variant{}}
	result, err := g.generate(ctx)
	switch {
	case err == nil, errors.Is(err, job.ErrStopped):
		return result, err
	default:
		return result, fmt.Errorf("%s %s/%s: %w", t.noun, t.bucket, t.key, err)
	}
}

func (g *generation) generate(ctx context.Context) (job.Result, error) {
	if err := g.readSource(ctx); err != nil {
		return job.Result{}, err
	}
	if err := g.findStored(ctx); err != nil {
		return job.Result{}, err
	}
	if err := g.makeMissing(ctx); err != nil {
		return job.Result{}, err
	}
	newManifest, err := g.writeManifest(ctx)
	if err != nil {
		return job.Result{}, err
	}
	others, err := g.lookBack(ctx)
	if err != nil {
		return job.Result{}, err
	}
	return g.result(newManifest, others), nil
}

// others is what else there is of this content.
type others struct {
	recipes int64 // objects made by other recipes: pages may still name them
	uploads int64 // manifests of other uploads
}

// lookBack looks at what is stored of this content, once the manifest is. A variant that nothing
// named before may have been removed as such: then the run has to make it again.
func (g *generation) lookBack(ctx context.Context) (o others, err error) {
	there := map[string]bool{}
	for info, err := range g.store.List(ctx, g.targetBucket, g.keys.folder+"/") {
		there[info.Key] = true
		switch {
		case err != nil:
			return o, err
		case !strings.HasPrefix(info.Key, g.keys.folder+"/"+g.keys.recipe+"-"):
			o.recipes++
		case strings.HasSuffix(info.Key, manifestExtension) && info.Key != g.keys.manifest():
			o.uploads++
		}
	}
	for _, v := range g.stored {
		if !there[v.Key] {
			return o, job.Fail(errclass.ObjectMissing, "variant %s was removed before the manifest named it", v.Key)
		}
	}
	return o, nil
}

// readSource reads the upload and checks it, without decoding it.
func (g *generation) readSource(ctx context.Context) error {
	limits := imaging.DefaultLimits()
	data, info, err := g.store.Get(ctx, g.bucket, g.key, limits.MaxFileBytes)
	if job.ClassOf(err) == errclass.ObjectTooLarge {
		return job.Fail(errclass.ImageTooLarge, "%w", err)
	}
	if err != nil {
		return err
	}
	picture, err := imaging.Inspect(data, limits)
	if err != nil {
		return classify(err)
	}
	g.data, g.notes, g.wanted, g.vector = data, picture.Notes, g.recipe.Variants, picture.Vector
	if g.vector != nil {
		if g.recipe.Kind != kindLogo {
			return job.Fail(errclass.InvalidImage, "the file is SVG, which is taken for logos alone")
		}
		g.wanted = append(slices.Clone(g.wanted), imaging.Wanted{Name: vectorName, Fit: imaging.Inside, Format: imaging.SVG})
	}
	for _, note := range g.notes {
		g.run.Logger().WarnContext(ctx, "the variants do not show all that the upload says", "why", note)
	}
	g.source = Source{
		Bucket: g.bucket, Key: g.key, ETag: info.ETag,
		SHA256: objects.Hash(data), Bytes: int64(len(data)),
		Format: string(picture.Format), Width: picture.Width, Height: picture.Height, Orientation: int(picture.Orientation),
		Taken: picture.Taken,
	}
	if g.rights {
		g.source.Copyright, g.source.Artist = picture.Copyright, picture.Artist
	}
	g.keys = g.layout(g.source.SHA256)
	return nil
}

// classify gives errors of package imaging their class; others are those of a
// context that ended.
func classify(err error) error {
	var invalid *imaging.InvalidError
	var limit *imaging.LimitError
	var died *process.DiedError
	switch {
	case errors.As(err, &invalid):
		return job.Fail(errclass.InvalidImage, "%w", err)
	case errors.As(err, &limit):
		return job.Fail(errclass.ImageTooLarge, "%w", err)
	case errors.As(err, &died):
		return job.Fail(errclass.ImageProcessDied, "%w", err)
	}
	return err
}

// findStored looks for the variants and the manifest that are there already.
func (g *generation) findStored(ctx context.Context) error {
	for _, v := range g.wanted {
		info, err := g.store.Stat(ctx, g.targetBucket, g.keys.variant(v))
		if job.ClassOf(err) == errclass.ObjectMissing {
			continue
		}
		if err != nil {
			return err
		}
		if info.SHA256 == "" {
			// Not written by this program: making it anew compares the content.
			continue
		}
		w, h := v.Size(g.source.Width, g.source.Height)
		g.keep(v, w, h, info)
	}
	stored, _, err := g.store.Get(ctx, g.targetBucket, g.keys.manifest(), MaxManifestBytes)
	if class := job.ClassOf(err); err != nil && class != errclass.ObjectMissing && class != errclass.ObjectTooLarge {
		return err
	}
	var manifest Manifest
	if err == nil && json.Unmarshal(stored, &manifest) == nil {
		// Engines look a little differently at a picture: what is stored stays.
		g.manifest, g.look = stored, manifest.Look
	}
	return nil
}

func (g *generation) keep(v imaging.Wanted, w, h int, info objects.Info) {
	g.stored[v.Name] = Variant{
		Name: v.Name, Key: info.Key, ContentType: contentType(v.Format),
		Width: w, Height: h, Bytes: info.Size, SHA256: info.SHA256,
	}
}

// makeMissing makes all variants and writes those that are missing. All are made even when some
// are stored, so that every variant has the same pixels whichever run made it.
func (g *generation) makeMissing(ctx context.Context) error {
	var work imaging.Task
	total, done := int64(0), int64(0)
	if len(g.stored) < len(g.wanted) {
		work.Outputs, total = slices.Clone(g.recipe.Variants), int64(len(g.wanted))
	} else {
		work.Stored = g.recipe.Variants
	}
	if g.look == nil {
		work.Outputs = append(work.Outputs, imaging.Wanted{Name: "look", Fit: imaging.Inside, Format: imaging.LookFormat})
	}
	if len(work.Outputs) == 0 {
		return nil
	}
	if job.Stopped(g.run) {
		return job.ErrStopped
	}
	if total > 0 {
		g.run.Checkpoint(job.Progress{Total: total,
			Message: fmt.Sprintf("making %d pictures of %s of %d×%d pixels", total, g.source.Format, g.source.Width, g.source.Height)}, nil)
	}
	made, err := g.pictures.Make(ctx, g.data, imaging.DefaultLimits(), work)
	if err != nil {
		return classify(err)
	}
	g.data = nil
	if g.vector != nil && total > 0 {
		made = append(made, imaging.Made{Output: len(work.Outputs), Width: g.source.Width, Height: g.source.Height, Data: g.vector})
		work.Outputs = append(work.Outputs, g.wanted[len(g.wanted)-1])
	}
	for _, m := range made {
		v := work.Outputs[m.Output]
		if job.Stopped(g.run) {
			return job.ErrStopped
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if v.Format == imaging.LookFormat {
			if err := json.Unmarshal(m.Data, &g.look); err != nil {
				return fmt.Errorf("the look of an image process: %w", err)
			}
			continue
		}
		said := "already there"
		if _, found := g.stored[v.Name]; !found {
			if said, err = g.write(ctx, v, m); err != nil {
				return err
			}
		}
		done++
		g.run.Checkpoint(job.Progress{Done: done, Total: total,
			Message: fmt.Sprintf("%s %d×%d %s", v.Name, m.Width, m.Height, said)}, nil)
	}
	return nil
}

// What is stored says how long readers may keep it: keys of variants change with their content.
const (
	immutable    = "public, max-age=31536000, immutable"
	changing     = "no-cache"
	manifestType = "application/json"
)

func (g *generation) write(ctx context.Context, v imaging.Wanted, m imaging.Made) (said string, err error) {
	object := objects.Object{
		Bucket: g.targetBucket, Key: g.keys.variant(v), Data: m.Data,
		ContentType: contentType(v.Format), CacheControl: immutable,
	}
	if v.Format == imaging.SVG {
		// It shows where a page has it as a picture. Who opens its address gets a file.
		object.ContentDisposition = `attachment; filename="logo.svg"`
		object.Metadata = map[string]string{"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
	}
	info, written, err := g.store.PutNew(ctx, object)
	if conflict := (*objects.ConflictError)(nil); errors.As(err, &conflict) && conflict.Existing.SHA256 != "" {
		// Another version of this program wrote it: only that leaves a hash.
		// The key stands for content and recipe, and readers may have it
		// cached: what is stored stays.
		g.run.Logger().WarnContext(ctx, "variant is stored with other bytes and kept", "key", conflict.Existing.Key)
		info, err = conflict.Existing, nil
	}
	if err != nil {
		return "", err
	}
	g.keep(v, m.Width, m.Height, info)
	if !written {
		return "already there", nil
	}
	g.written++
	return "written", nil
}

// writeManifest stores the manifest and reports whether it was new.
func (g *generation) writeManifest(ctx context.Context) (bool, error) {
	variants := g.variants()
	manifest := Manifest{
		Format: manifestFormat, Source: g.source, Look: g.look, Recipe: job.EncodeJSON(g.recipe), Variants: variants,
		SrcSet: g.recipe.srcSet(variants), Notes: g.notes,
	}
	key := g.keys.manifest()
	if describes(g.manifest, manifest) {
		return false, nil
	}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return false, fmt.Errorf("encode manifest: %w", err)
	}
	object := objects.Object{
		Bucket: g.targetBucket, Key: key, Data: append(text, '\n'),
		ContentType: manifestType, CacheControl: changing,
	}
	_, written, err := g.store.PutNew(ctx, object)
	if conflict := (*objects.ConflictError)(nil); errors.As(err, &conflict) {
		// It tells of variants that were lost and made anew, or it is damaged.
		g.run.Logger().WarnContext(ctx, "manifest does not describe what is stored and is replaced", "key", key)
		_, err = g.store.Put(ctx, object)
		written = true
	}
	return written, err
}

// describes reports whether a stored manifest tells the same as one just made. The
// ETag may differ: the same content may have been uploaded again.
func describes(stored []byte, made Manifest) bool {
	var m Manifest
	if json.Unmarshal(stored, &m) != nil {
		return false
	}
	m.Source.ETag = made.Source.ETag
	return bytes.Equal(job.EncodeJSON(m), job.EncodeJSON(made))
}

func (g *generation) variants() []Variant {
	all := make([]Variant, len(g.wanted))
	for i, v := range g.wanted {
		all[i] = g.stored[v.Name]
	}
	return all
}

func (g *generation) result(newManifest bool, others others) job.Result {
	total := len(g.wanted)
	existing := total - g.written
	var message string
	switch {
	case existing == 0:
		message = fmt.Sprintf("%d variants written", g.written)
	case g.written > 0:
		message = fmt.Sprintf("%d variants written, %d already there", g.written, existing)
	case newManifest:
		message = fmt.Sprintf("%d variants already there, manifest written", existing)
	default:
		message = fmt.Sprintf("%d variants already there, nothing written", existing)
	}
	if others.recipes > 0 {
		message += fmt.Sprintf("; %d objects of other recipes stay", others.recipes)
	}
	if others.uploads > 0 {
		message += fmt.Sprintf("; other uploads of the same content: %d", others.uploads)
	}
	manifests := int64(0)
	if newManifest {
		manifests = 1
	}
	return job.Result{
		Message: message,
		Counts: map[string]int64{
			"written": int64(g.written), "existing": int64(existing),
			"manifests_written": manifests, "other_recipes": others.recipes, "same_content": others.uploads,
			"source_bytes": g.source.Bytes,
		},
		Output: job.EncodeJSON(Output{Bucket: g.targetBucket, Manifest: g.keys.manifest(), Variants: g.variants(), Notes: g.notes}),
	}
}
