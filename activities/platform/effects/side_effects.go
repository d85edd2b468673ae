package effects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Spec is the spec of SideEffectsSubscribeToChanges.
type Spec struct {
	feed.Spec
	Tables string `json:"tables,omitempty" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"common1" help:"location whose tables are discovered, of those in the worker's DENDRA_PLACES; without it none are"`
}

// recent is how old the last change of a station may be for a snapshot to have its tables
// discovered: an older one was seen when it was made.
const recent = 7 * 24 * time.Hour

// SideEffects makes the job type SideEffectsSubscribeToChanges. Nil clients are enough to
// describe it.
//
// What follows from a change is a job in a queue of the organization. Its id is made of
// what the job is for, such as the upload's ETag, so that the same change, however often
// it comes, leads to one run.
func SideEffects(store *objects.Store, api *platform.Client, client *pipeline.Client, at places.Places) job.Type {
	return job.NewType("SideEffectsSubscribeToChanges", job.WorkerBackend,
		"Follows the platform's changes: makes variants of photos and logos, discovers tables, tears down organizations.",
		func(ctx context.Context, run job.Run, spec Spec) (job.Result, error) {
			e := effects{store: store, platform: api, jobs: run.Jobs(), places: at}
			if spec.Tables != "" {
				tables, err := at.Location(spec.Tables)
				if err != nil {
					return job.Result{}, err
				}
				e.tables = &tables
			}
			return feed.Subscriber{
				Kinds: []platformv1.ResourceKind{
					platformv1.ResourceKind_RESOURCE_KIND_ORGANIZATION, platformv1.ResourceKind_RESOURCE_KIND_STATION,
				},
				Handle:     e.handle,
				Quarantine: feed.Quarantine(client, run),
			}.Run(ctx, run, api, spec.Spec)
		}, job.ModeContinuous)
}

type effects struct {
	store    *objects.Store
	platform *platform.Client
	jobs     job.Jobs
	places   places.Places
	tables   *influx.Servers // whose tables are discovered; nil for none
}

func (e effects) handle(ctx context.Context, change *platformv1.Change) error {
	organization, station := change.GetAfter().GetOrganization(), change.GetAfter().GetStation()
	if organization != nil && concerns(change, "delete_time", "purge_time") {
		if err := e.tearDown(ctx, change); err != nil {
			return err
		}
	}
	if organization.GetDeleteTime() != nil {
		return nil
	}
	// One effect that fails keeps no other back.
	var failed []error
	if e.tables != nil && station != nil && discovers(change) {
		failed = append(failed, e.discover(ctx, change))
	}
	if logo := organization.GetLogo(); logo != nil && concerns(change, "logo") {
		failed = append(failed, e.variants(ctx, organization.GetId(), images.LogoAvatarVariantsType, logo, images.LogoAvatarSpec{
			Bucket: logo.GetBucket(), Key: logo.GetKey(), TargetBucket: e.places.TargetBucket,
			Prefix: places.VariantsPrefix("logos", organization.GetId()),
		}))
	}
	if concerns(change, "photos") {
		for _, photo := range station.GetPhotos() {
			object := photo.GetObject()
			failed = append(failed, e.variants(ctx, station.GetOrganizationId(), images.PhotoVariantsType, object, images.PhotoSpec{
				Bucket: object.GetBucket(), Key: object.GetKey(), TargetBucket: e.places.TargetBucket,
				Prefix: places.VariantsPrefix("photos", station.GetOrganizationId()),
			}))
		}
	}
	return feed.Join(failed)
}

// tearDown has the job that tears an organization down that is marked as deleted, and ends
// that of a mark that was taken away. A change may be old: whether the organization is
// marked is asked.
func (e effects) tearDown(ctx context.Context, change *platformv1.Change) error {
	now, err := e.organization(ctx, change.GetResourceId())
	if err != nil || now == nil {
		return err
	}
	before := change.GetBefore().GetOrganization()
	if before.GetDeleteTime() != nil && before.GetDeleteTime().AsTime() != now.GetDeleteTime().AsTime() {
		err = teardown.Withdraw(ctx, e.jobs, before)
	}
	if err == nil {
		err = teardown.Apply(ctx, e.jobs, now)
	}
	if err != nil {
		return job.Fail(errclass.QueueUnreachable, "teardown of organization %s: %w", now.GetSlug(), err)
	}
	return nil
}

// organization is an organization as it is now, nil if it is gone.
func (e effects) organization(ctx context.Context, id string) (*platformv1.Organization, error) {
	answer, err := e.platform.Organizations.GetOrganization(ctx, &platformv1.GetOrganizationRequest{Id: id})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return nil, nil //nolint:nilnil // Documented: it is gone.
	}
	return answer.GetOrganization(), platform.Explain(err)
}

// concerns reports whether a change may have to do with one of the fields.
func concerns(change *platformv1.Change, fields ...string) bool {
	if change.GetOperation() != platformv1.Operation_OPERATION_UPDATE {
		return true
	}
	return slices.ContainsFunc(change.GetChangedKeys(), func(key string) bool { return slices.Contains(fields, key) })
}

// discovers reports whether the tables of a station may be others, or someone asks for them.
// A station that is new, or was read, does not say what was changed.
func discovers(change *platformv1.Change) bool {
	if change.GetOperation() == platformv1.Operation_OPERATION_UPDATE {
		return concerns(change, "table_discovery_request_time", "database", "slug")
	}
	station := change.GetAfter().GetStation()
	for _, at := range []*timestamppb.Timestamp{
		station.GetTableDiscoveryRequestTime(), station.GetModification().GetCreateTime(), station.GetModification().GetUpdateTime(),
	} {
		if at != nil && time.Since(at.AsTime()) < recent {
			return true
		}
	}
	return false
}

// variants puts a job into the queue that makes the variants of an upload. Variants are
// public: nothing else that a record names gets any.
func (e effects) variants(ctx context.Context, organization, typeName string, upload *platformv1.ObjectReference, spec any) error {
	if err := e.places.CheckUpload(organization, upload); err != nil {
		return err
	}
	info, err := e.store.Stat(ctx, upload.GetBucket(), upload.GetKey())
	if err != nil {
		return err
	}
	_, err = e.enqueue(ctx, organization, typeName, "images."+organization,
		digest(upload.GetBucket(), upload.GetKey(), info.ETag, e.places.TargetBucket), spec)
	return err
}

func (e effects) discover(ctx context.Context, change *platformv1.Change) error {
	station, id := change.GetAfter().GetStation(), ""
	if change.GetOperation() == platformv1.Operation_OPERATION_UPDATE && concerns(change, "database", "slug") {
		id = change.GetId() // What is changed back is no repeat of what was before.
	}
	spec := integration.DiscoverSpec{OrganizationID: station.GetOrganizationId(), StationID: station.GetId(), Servers: *e.tables}
	asked := station.GetTableDiscoveryRequestTime().AsTime().Format(time.RFC3339Nano)
	_, err := e.enqueue(ctx, station.GetOrganizationId(), integration.DiscoverTablesType, "tables."+station.GetOrganizationId(),
		named(digest(station.GetSlug(), station.GetDatabase(), asked, id, string(job.EncodeJSON(spec))), station), spec)
	return err
}

// named is a digest that says which station it is about: its slug comes last, as lists that
// are short of room leave out the middle of an id.
func named(digest string, station *platformv1.Station) string {
	const digits, longest = 12, 64 // A key of a job has no more.
	name := station.GetSlug()
	if job.CheckKey("slug", name) != nil {
		name = station.GetId()
	}
	key := digest[:digits] + "-" + name
	return key[:min(len(key), longest)]
}

// enqueue puts a job into a queue, which knows by the key that it ran already. An
// organization that is marked as deleted, or gone, gets no more jobs: it reports false.
// Without the id of one, or without a platform, nobody is asked.
func (e effects) enqueue(ctx context.Context, organization, typeName, queue, key string, spec any) (bool, error) {
	if organization != "" && e.platform != nil {
		now, err := e.organization(ctx, organization)
		if err != nil || now == nil || now.GetDeleteTime() != nil {
			return false, err
		}
	}
	j := job.Job{
		ID: job.ID(typeName, key), Type: typeName, Worker: job.WorkerBackend, Spec: job.EncodeJSON(spec),
		Trigger: job.Trigger{Queued: &job.Queued{Queue: queue}}, Options: job.DefaultOptions(job.ModeQueued),
	}
	if _, err := j.Enqueueable(); err != nil {
		return false, job.Fail(errclass.BadChange, "%w", err)
	}
	err := e.jobs.Enqueue(ctx, j, false)
	switch {
	case errors.Is(err, job.ErrRefused):
		return false, job.Fail(errclass.QueueRefused, "%w", err)
	case err != nil:
		return false, job.Fail(errclass.QueueUnreachable, "%w", err)
	}
	return true, nil
}

// digest is a key made of texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:16])
}
