package effects

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/report"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// ImagesSpec is the spec of ReconcileImages.
type ImagesSpec struct {
	Prefixes       []string              `json:"prefixes,omitempty" default:"[\"photos\",\"logos\"]" maxItems:"16" uniqueItems:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$" help:"first parts of the keys of the variants; none is below another one"`
	RemoveUnnamed  bool                  `json:"remove_unnamed,omitempty" help:"removes variants that no manifest names"`
	RemoveGone     bool                  `json:"remove_gone,omitempty" help:"removes variants and manifests whose upload is gone, or has other content"`
	RemoveReplaced bool                  `json:"remove_replaced,omitempty" help:"removes what other recipes made of uploads that have variants of the present recipe"`
	Remake         bool                  `json:"remake,omitempty" help:"queues jobs for uploads without variants of the present recipe, and for those that lost some"`
	Grace          job.Duration          `json:"grace,omitzero" default:"P1D" minimum:"PT10M" help:"how old everything that was made of an upload has to be, before any of it is removed"`
	Ladder         images.Ladder         `json:"ladder,omitempty" enum:"default,release2,responsive" help:"the present recipe of photos; defaults to default"`
	Variants       []images.PhotoVariant `json:"variants,omitempty" maxItems:"16" help:"the present recipe of photos, one by one, instead of a ladder"`
	Quality        int                   `json:"quality,omitempty" minimum:"1" maximum:"100" default:"82" help:"quality of variants of photos that set none"`
}

// Validate reports prefixes that contain each other, and what is wrong with the recipe.
func (s *ImagesSpec) Validate() error {
	var problems []error
	for i, prefix := range s.Prefixes {
		for _, other := range s.Prefixes {
			if strings.HasPrefix(prefix, other+"/") {
				problems = append(problems, fmt.Errorf("prefixes.%d: %s is below %s", i, prefix, other))
			}
		}
	}
	photo := s.photo()
	return errors.Join(append(problems, photo.Validate())...)
}

func (s *ImagesSpec) photo() images.PhotoSpec {
	return images.PhotoSpec{TargetBucket: "-", Ladder: s.Ladder, Variants: s.Variants, Quality: s.Quality}
}

// removes reports whether things of a kind are to be removed.
func (s *ImagesSpec) removes(kind string) bool {
	return map[string]bool{KindUnnamed: s.RemoveUnnamed, KindGone: s.RemoveGone, KindReplaced: s.RemoveReplaced}[kind]
}

// Kinds of things in the report of ReconcileImages.
const (
	KindUnnamed    = "unnamed"    // variants that no manifest names
	KindGone       = "gone"       // objects whose upload is gone, or has other content
	KindReplaced   = "replaced"   // objects of other recipes than that which the upload has, too
	KindRecent     = "recent"     // objects of these kinds that are within the grace time, or stand beside such
	KindStale      = "stale"      // uploads without variants of the present recipe
	KindIncomplete = "incomplete" // uploads whose manifest names variants that are not there
)

// ImagesReport is the output of a run of ReconcileImages.
type ImagesReport struct {
	// Stages are the prefixes.
	Stages []*report.Stage `json:"stages"`
	// Counts are of all objects below the prefixes, of those that are manifests, of those that
	// are none of ours, and of what was removed and queued.
	Counts map[string]int64 `json:"counts"`
}

func (r *ImagesReport) stage(name string) *report.Stage {
	at := slices.IndexFunc(r.Stages, func(s *report.Stage) bool { return s.Name == name })
	if at < 0 {
		at = len(r.Stages)
		r.Stages = append(r.Stages, &report.Stage{Name: name})
	}
	return r.Stages[at]
}

// imagesCursor is where a run of ReconcileImages is.
type imagesCursor struct {
	// After is the last key that is done.
	After  string       `json:"after"`
	Report ImagesReport `json:"report"`
}

// ReconcileImages makes the job type of that name. Nil clients are enough to describe it.
//
// It goes through the bucket of variants by key, and looks at all that was made of one content
// together: the folder. Without another order it only tells.
func ReconcileImages(store *objects.Store, api *platform.Client, at places.Places) job.Type {
	return reconcileImages(store, api, at, time.Now)
}

func reconcileImages(store *objects.Store, api *platform.Client, at places.Places, now func() time.Time) job.Type {
	return job.NewType("ReconcileImages", job.WorkerBackend,
		"Finds variants of photos and logos that nothing names, and uploads whose variants are missing or of another recipe.",
		func(ctx context.Context, run job.Run, spec ImagesSpec) (job.Result, error) {
			k := &keeper{
				effects: effects{store: store, platform: api, jobs: run.Jobs(), places: at}, run: run, spec: spec, now: now,
			}
			photo := spec.photo()
			k.recipes = map[string]string{"photo": photo.RecipeHash(), "logo": (&images.LogoAvatarSpec{}).RecipeHash()}
			return k.reconcile(ctx)
		}, job.ModeOneShot, job.ModeRecurring)
}

// keeper is one attempt of a run of ReconcileImages.
type keeper struct {
	effects
	run     job.Run
	spec    ImagesSpec
	now     func() time.Time
	recipes map[string]string // present ones, by kind
	cursor  imagesCursor
}

// Folders are looked at in batches, several at a time: the store's answers take longer than our
// work. A folder with more objects was not made by this program alone.
const (
	batchFolders  = 64
	folderWorkers = 8
	maxFolder     = 5000
)

func (k *keeper) reconcile(ctx context.Context) (job.Result, error) {
	if _, err := k.run.Cursor(&k.cursor); err != nil {
		return job.Result{}, err
	}
	if k.cursor.Report.Counts == nil {
		k.cursor.Report.Counts = map[string]int64{}
	}
	slices.SortFunc(k.spec.Prefixes, func(a, b string) int { return cmp.Compare(a+"/", b+"/") })
	for _, prefix := range k.spec.Prefixes {
		if k.cursor.After != "" && k.cursor.After > prefix+"/\xff" {
			continue
		}
		if err := k.walk(ctx, prefix); err != nil {
			return job.Result{}, err
		}
	}
	r := k.cursor.Report
	return job.Result{Message: r.text(), Counts: r.Counts, Output: job.EncodeJSON(r)}, nil
}

// text is the counts in words.
func (r *ImagesReport) text() string {
	text := fmt.Sprintf("%d objects of %d manifests", r.Counts["objects"], r.Counts["manifests"])
	for _, kind := range []string{KindUnnamed, KindGone, KindReplaced, KindRecent, KindStale, KindIncomplete} {
		if n := r.Counts[kind]; n > 0 {
			text += fmt.Sprintf(", %s %d", kind, n)
		}
	}
	return text + fmt.Sprintf("; removed %d, queued %d", r.Counts["removed"], r.Counts["queued"])
}

// folder is all that was made of one content.
type folder struct {
	name, prefix string // prefix is that of the spec that made it
	objects      []objects.Info
}

// walk goes through the folders below a prefix.
func (k *keeper) walk(ctx context.Context, prefix string) error {
	stage := k.cursor.Report.stage(prefix)
	var batch []*folder
	var open *folder
	seen, done := k.cursor.After, k.cursor.After // keys: the last one, and the last one before open
	var counts, counted int64                    // of foreign objects
	flush := func() error {
		if err := k.batch(ctx, stage, batch); err != nil {
			return err
		}
		batch = batch[:0]
		k.cursor.Report.Counts["foreign"] += counted
		k.cursor.After, counts, counted = done, counts-counted, 0
		k.run.Checkpoint(job.Progress{Done: k.cursor.Report.Counts["objects"], Message: k.cursor.Report.text()}, k.cursor)
		return nil
	}
	for info, err := range k.store.ListAfter(ctx, k.places.TargetBucket, prefix+"/", k.cursor.After) {
		if err != nil {
			return err
		}
		key, ours := images.ParseKey(info.Key)
		switch {
		case !ours, !strings.HasPrefix(info.Key, prefix+"/"): // Some stores list without regard to case.
			counts++
		case open == nil || open.name != key.Folder:
			if open != nil {
				batch = append(batch, open)
			}
			open, done, counted = &folder{name: key.Folder, prefix: key.Prefix}, seen, counts
			if len(batch) == batchFolders {
				if err := flush(); err != nil {
					return err
				}
			}
			fallthrough
		default:
			if len(open.objects) <= maxFolder {
				open.objects = append(open.objects, info)
			}
		}
		seen = info.Key
	}
	if open != nil {
		batch = append(batch, open)
	}
	done, counted = max(seen, done), counts
	return flush()
}

// verdict is what is found in a folder.
type verdict struct {
	things []thing
	kept   []string
	remake []images.Manifest // of one upload each
}

type thing struct {
	kind, name string
	size       int64
	remove     bool
}

func (v *verdict) keep(format string, args ...any) {
	v.kept = append(v.kept, fmt.Sprintf(format, args...))
}

// outcome is what became of a folder.
type outcome struct {
	verdict
	manifests, removed, removedBytes, queued int64
}

// batch looks at folders, and does what the spec wants. What it has done is in the report, in the
// order of the folders.
func (k *keeper) batch(ctx context.Context, stage *report.Stage, batch []*folder) error {
	outcomes := make([]outcome, len(batch))
	group, within := job.NewGroup(ctx)
	group.SetLimit(folderWorkers)
	for n, f := range batch {
		group.Go(func() error {
			if job.Stopped(k.run) {
				return job.ErrStopped
			}
			return k.tidy(within, f, &outcomes[n])
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	counts := k.cursor.Report.Counts
	for n, o := range outcomes {
		for _, t := range o.things {
			stage.Add(t.kind, t.name, 1, t.size)
			counts[t.kind]++
		}
		for _, text := range o.kept {
			stage.Keep("%s", text)
		}
		counts["objects"] += int64(len(batch[n].objects))
		counts["manifests"] += o.manifests
		counts["removed"] += o.removed
		counts["removed_bytes"] += o.removedBytes
		counts["queued"] += o.queued
	}
	return nil
}

// tidy looks at a folder, and does what the spec wants.
func (k *keeper) tidy(ctx context.Context, f *folder, o *outcome) error {
	if len(f.objects) > maxFolder {
		o.keep("%s/ stays: it has more than %d objects", f.name, maxFolder)
		return nil
	}
	for _, info := range f.objects {
		if key, _ := images.ParseKey(info.Key); key.Address != "" {
			o.manifests++
		}
	}
	var err error
	if o.verdict, err = k.judge(ctx, f); err != nil {
		return err
	}
	if slices.ContainsFunc(o.things, func(t thing) bool { return t.remove }) {
		if err := k.remove(ctx, f, o); err != nil {
			return err
		}
	}
	if !k.spec.Remake {
		return nil
	}
	for _, m := range o.remake {
		queued, err := k.remake(ctx, f, m)
		switch {
		case slices.Contains([]string{errclass.NotAnUpload, errclass.BadChange, errclass.QueueRefused}, job.ClassOf(err)):
			o.keep("%s/%s is not made again: %s", m.Source.Bucket, m.Source.Key, err)
		case err != nil:
			return err
		case queued:
			o.queued++
		}
	}
	return nil
}

// judge says what is to be done about the objects of a folder. What is unclear stays.
func (k *keeper) judge(ctx context.Context, f *folder) (v verdict, err error) {
	manifests, err := k.manifests(ctx, f, &v)
	if err != nil || len(v.kept) > 0 {
		return v, err
	}
	there := map[string]bool{}
	recent := false
	for _, info := range f.objects {
		there[info.Key] = true
		recent = recent || k.now().Sub(info.Modified) < k.spec.Grace.Std()
	}
	of := map[string]string{} // kinds by key; "" is what stays
	again := map[string]bool{}
	for key, m := range manifests {
		kind, err := k.state(ctx, key, m, manifests, &v)
		if err != nil {
			return v, err
		}
		if kind == KindStale && !again[m.Source.Bucket+"/"+m.Source.Key] {
			again[m.Source.Bucket+"/"+m.Source.Key] = true
			v.remake = append(v.remake, m)
			v.things = append(v.things, thing{kind: kind, name: m.Source.Bucket + "/" + m.Source.Key})
		}
		if parsed, _ := images.ParseKey(key); kind == "" && parsed.Recipe == k.recipes[m.Kind()] {
			missing, err := k.lost(ctx, m, there)
			if err != nil {
				return v, err
			}
			if missing {
				v.remake = append(v.remake, m)
				v.things = append(v.things, thing{kind: KindIncomplete, name: m.Source.Bucket + "/" + m.Source.Key})
			}
		}
		if kind == KindStale {
			kind = ""
		}
		of[key] = kind
		for _, variant := range m.Variants {
			// Who wants it to stay has the last word, and then who knows that it was replaced.
			if other, named := of[variant.Key]; !named || other != "" && (kind == "" || kind == KindReplaced) {
				of[variant.Key] = kind
			}
		}
	}
	for _, info := range f.objects {
		kind, named := of[info.Key]
		if !named {
			kind = KindUnnamed
		}
		if kind == "" {
			continue
		}
		t := thing{kind: kind, name: info.Key, size: info.Size, remove: !recent && k.spec.removes(kind)}
		if recent {
			t.kind = KindRecent
		}
		v.things = append(v.things, t)
	}
	slices.SortFunc(v.things, func(a, b thing) int { return cmp.Compare(a.name, b.name) })
	return v, nil
}

// manifests reads those of a folder, by key. One that cannot be read is told.
func (k *keeper) manifests(ctx context.Context, f *folder, v *verdict) (map[string]images.Manifest, error) {
	all := map[string]images.Manifest{}
	for _, info := range f.objects {
		if key, _ := images.ParseKey(info.Key); key.Address == "" {
			continue
		}
		data, _, err := k.store.Get(ctx, k.places.TargetBucket, info.Key, images.MaxManifestBytes)
		switch class := job.ClassOf(err); {
		case class == errclass.ObjectMissing:
			continue
		case class == errclass.ObjectTooLarge:
			v.keep("%s/ stays: manifest %s is too large", f.name, info.Key)
			continue
		case err != nil:
			return nil, err
		}
		m, err := images.ReadManifest(info.Key, data)
		if err != nil {
			v.keep("%s/ stays: %s", f.name, err)
			continue
		}
		all[info.Key] = m
	}
	return all, nil
}

// state says what became of the upload of a manifest: "" if all is as it should be.
func (k *keeper) state(ctx context.Context, key string, m images.Manifest, all map[string]images.Manifest, v *verdict) (string, error) {
	if err := k.places.CheckUploadBucket(m.Source.Bucket, m.Source.Key); err != nil {
		v.keep("%s stays: %s", key, err)
		return "", nil
	}
	there, err := k.unchanged(ctx, m.Source)
	if err != nil {
		return "", err
	}
	parsed, _ := images.ParseKey(key)
	wanted, known := k.recipes[m.Kind()]
	switch {
	case !there:
		return KindGone, nil
	case !known, parsed.Recipe == wanted:
		return "", nil
	}
	if _, made := all[parsed.Folder+"/"+wanted+"-"+parsed.Address+".json"]; made {
		return KindReplaced, nil
	}
	return KindStale, nil
}

// unchanged reports whether an upload is there with the content that it had.
func (k *keeper) unchanged(ctx context.Context, source images.Source) (bool, error) {
	reader, err := k.store.Open(ctx, source.Bucket, source.Key, "")
	if job.ClassOf(err) == errclass.ObjectMissing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = reader.Close() }()
	if info := reader.Info(); info.ETag == source.ETag || info.Size != source.Bytes {
		return info.ETag == source.ETag, nil
	}
	// It was uploaded again.
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(reader, 0, math.MaxInt64)); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == source.SHA256, nil
}

// lost reports whether a variant that a manifest names is not there.
func (k *keeper) lost(ctx context.Context, m images.Manifest, there map[string]bool) (bool, error) {
	for _, variant := range m.Variants {
		if there[variant.Key] {
			continue
		}
		// It may be newer than the list.
		_, err := k.store.Stat(ctx, k.places.TargetBucket, variant.Key)
		if job.ClassOf(err) == errclass.ObjectMissing {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// remove removes what is to be removed of a folder, once all that speaks for it was read anew: a
// run may have come meanwhile.
func (k *keeper) remove(ctx context.Context, f *folder, o *outcome) error {
	now := &folder{name: f.name, prefix: f.prefix}
	for info, err := range k.store.List(ctx, k.places.TargetBucket, f.name+"/") {
		if err != nil {
			return err
		}
		if key, ours := images.ParseKey(info.Key); ours && key.Folder == f.name {
			now.objects = append(now.objects, info)
		}
	}
	var err error
	if o.verdict, err = k.judge(ctx, now); err != nil {
		return err
	}
	// Manifests first: what they named is unnamed, should the run end in between.
	isVariant := func(t thing) bool { return !strings.HasSuffix(t.name, ".json") }
	manifests, variants := slices.DeleteFunc(slices.Clone(o.things), isVariant), slices.Clone(o.things)
	for _, t := range append(manifests, slices.DeleteFunc(variants, func(t thing) bool { return !isVariant(t) })...) {
		if !t.remove {
			continue
		}
		info, err := k.store.Stat(ctx, k.places.TargetBucket, t.name)
		switch {
		case job.ClassOf(err) == errclass.ObjectMissing:
			continue
		case err != nil:
			return err
		case !images.IsOwn(info):
			o.keep("%s stays: its metadata is not that of a variant", t.name)
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := k.store.Remove(ctx, k.places.TargetBucket, t.name); err != nil {
			return err
		}
		o.removed++
		o.removedBytes += t.size
	}
	return nil
}

// ofOrganization is the prefix of an organization's variants.
var ofOrganization = regexp.MustCompile(`^(photos|logos)/([0-9a-f]{24})$`)

// remake queues the job that makes the variants of an upload. It reports false for an organization
// that is gone. What a manifest says of its upload is held against the rules for those.
func (k *keeper) remake(ctx context.Context, f *folder, m images.Manifest) (bool, error) {
	if err := k.places.CheckUploadBucket(m.Source.Bucket, m.Source.Key); err != nil {
		return false, err
	}
	organization, queue := "", "images"
	if found := ofOrganization.FindStringSubmatch(f.prefix); found != nil {
		organization = found[2]
		queue += "." + organization
		if err := k.places.CheckUpload(organization, &platformv1.ObjectReference{Bucket: m.Source.Bucket, Key: m.Source.Key}); err != nil {
			return false, err
		}
	}
	typeName, spec := images.PhotoVariantsType, any(images.PhotoSpec{
		Bucket: m.Source.Bucket, Key: m.Source.Key, TargetBucket: k.places.TargetBucket, Prefix: f.prefix,
		Ladder: k.spec.Ladder, Variants: k.spec.Variants, Quality: k.spec.Quality, Rights: m.Source.Copyright != "" || m.Source.Artist != "",
	})
	if m.Kind() == "logo" {
		typeName, spec = images.LogoAvatarVariantsType, images.LogoAvatarSpec{
			Bucket: m.Source.Bucket, Key: m.Source.Key, TargetBucket: k.places.TargetBucket, Prefix: f.prefix,
		}
	}
	return k.enqueue(ctx, organization, typeName, queue, digest(k.run.ID(), m.Source.Bucket, m.Source.Key, f.prefix), spec)
}
