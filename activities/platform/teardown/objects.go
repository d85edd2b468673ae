package teardown

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// variants removes the variants of photos and logos, uploads and exports, whose keys carry the
// organization's id. What its records name beside these is told.
func (t *teardown) variants(ctx context.Context) error {
	if !t.spec.DryRun {
		if err := t.queues(ctx); err != nil { // A late change may have put a job into one.
			return err
		}
	}
	for _, kind := range []string{"photos", "logos"} {
		prefix := places.VariantsPrefix(kind, t.organization.GetId()) + "/"
		if err := t.removeObjects(ctx, "variants", t.Places.TargetBucket, prefix, nil); err != nil {
			return err
		}
	}
	if err := t.removeObjects(ctx, "exports", t.Places.Exports.Bucket, places.ExportPrefix(t.organization.GetId()), nil); err != nil {
		return err
	}
	return t.uploads(ctx)
}

func (t *teardown) uploads(ctx context.Context) error {
	for _, bucket := range t.Places.UploadBuckets {
		if err := t.removeObjects(ctx, "uploads", bucket, places.UploadPrefix(t.organization.GetId()), nil); err != nil {
			return err
		}
	}
	stations, err := t.allStations(ctx)
	if err != nil {
		return err
	}
	t.keepForeign("the logo", t.organization.GetLogo())
	for _, s := range stations {
		for _, photo := range s.GetPhotos() {
			if t.owns(s) {
				t.keepForeign("a photo of station "+s.GetSlug(), photo.GetObject())
			}
		}
	}
	return nil
}

// keepForeign tells of an object that a record calls an upload and that is none of the
// organization's. It stays: anybody can name it.
func (t *teardown) keepForeign(what string, object *platformv1.ObjectReference) {
	if object == nil {
		return
	}
	if err := t.Places.CheckUpload(t.organization.GetId(), object); err != nil {
		t.stage.Keep("%s stays: %s", what, err)
	}
}

// removeObjects removes the objects whose keys begin with a prefix, which ends with a
// slash, and that own takes, if it is given. A bucket that is not there has none.
func (t *teardown) removeObjects(ctx context.Context, kind, bucket, prefix string, own func(context.Context, string) (bool, error)) error {
	for info, err := range t.Store.List(ctx, bucket, prefix) {
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !strings.HasPrefix(info.Key, prefix) {
			continue // Some stores list without regard to case.
		}
		if own != nil {
			mine, err := own(ctx, info.Key)
			if err != nil {
				return err
			}
			if !mine {
				continue
			}
		}
		err := t.remove(ctx, kind, bucket+"/"+info.Key, 1, func(ctx context.Context) error { return t.Store.Remove(ctx, bucket, info.Key) })
		if err != nil {
			return err
		}
	}
	return nil
}

func isMissing(err error) bool {
	class := job.ClassOf(err)
	return class == errclass.ObjectMissing || class == errclass.BucketMissing
}

// archive removes the archive of the organization, or keeps it.
func (t *teardown) archive(ctx context.Context) error {
	if !t.organization.GetDeleteArchive() && !t.spec.DeleteArchive {
		t.stage.Keep("the archive is kept")
		return nil
	}
	if err := t.checkSlug(ctx); err != nil {
		return err
	}
	if err := t.unblocked(); err != nil {
		return err
	}
	slug, at := t.organization.GetSlug(), t.Places.Archive
	batches := func(_ context.Context, key string) (bool, error) {
		data, ok := archive.ParseDataKey(strings.TrimPrefix(key, at.Prefix))
		return ok && data.Organization == slug, nil
	}
	if err := t.removeObjects(ctx, "archived", at.Bucket, at.Prefix+archive.DataPrefix(slug, ""), batches); err != nil {
		return err
	}
	conflicts := func(_ context.Context, key string) (bool, error) {
		organization, ok := archive.ConflictOf(strings.TrimPrefix(key, at.Prefix))
		return ok && organization == slug, nil
	}
	if err := t.removeObjects(ctx, "archived", at.Bucket, at.Prefix+archive.ConflictPrefix, conflicts); err != nil {
		return err
	}
	folder := documentFolder(slug)
	if err := t.removeObjects(ctx, "archived", at.Bucket, at.Prefix+folder+"/", func(ctx context.Context, key string) (bool, error) {
		if !document.MatchString(strings.TrimPrefix(key, at.Prefix+folder+"/")) {
			return false, nil
		}
		return t.ownDocument(ctx, key, folder)
	}); err != nil {
		return err
	}
	return t.removeObjects(ctx, "archived", at.Bucket, at.Prefix+"unnamed/"+slug+"/", func(_ context.Context, key string) (bool, error) {
		return unnamed.MatchString(strings.TrimPrefix(key, at.Prefix+"unnamed/"+slug+"/")), nil
	})
}

// Keys of documents below the folder of an organization: source, station, table, date,
// hour; and of those without such a path: source, number. Other folders may have the name
// of a slug, such as raw.
var (
	document = regexp.MustCompile(`^[^/]+/[^/]+/[^/]+/\d{4}/\d\d/\d\d/\d\d/[^/]+\.json$`)
	unnamed  = regexp.MustCompile(`^[^/]+/\d+_\d+\.json$`)
	unsafe   = regexp.MustCompile(`\W+`)
)

// documentFolder is the folder of an organization among documents.
func documentFolder(slug string) string { return strings.ToLower(unsafe.ReplaceAllString(slug, "_")) }

// maxDocument is more than NATS takes.
const maxDocument = 64 << 20

// ownDocument reports whether a document is the organization's. Only where another slug has
// the same folder, as org-1 and org_1 have, its content has to say so.
func (t *teardown) ownDocument(ctx context.Context, key, folder string) (bool, error) {
	organizations, err := t.allOrganizations(ctx)
	if err != nil {
		return false, err
	}
	shared := false
	for _, o := range organizations {
		shared = shared || o.GetId() != t.organization.GetId() && documentFolder(o.GetSlug()) == folder
	}
	if !shared {
		return true, nil
	}
	data, _, err := t.Store.Get(ctx, t.Places.Archive.Bucket, key, maxDocument)
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if organization := pipeline.OrganizationOf(data); organization != t.organization.GetSlug() {
		if !json.Valid(data) || organization == "" {
			t.stage.Keep("document %s does not say whose it is", key)
		}
		return false, nil
	}
	return true, nil
}
