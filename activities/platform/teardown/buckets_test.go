package teardown_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// TestUploadsAreWhereNothingElseIs: both job types refuse an upload bucket that holds
// variants or the archive.
func TestUploadsAreWhereNothingElseIs(t *testing.T) {
	t.Parallel()
	for jobType, begin := range map[*job.Type]string{
		new(feed.SideEffects(nil, nil, nil)):      "{",
		new(teardown.Organization(nil, nil, nil)): `{"organization_id":"5b0f155746a1b867a114e030",`,
	} {
		require.NoError(t, jobtest.CheckSpec(*jobType, begin+`"target_bucket":"public","upload_buckets":["media","uploads"]}`))
		for want, text := range map[string]string{
			"upload_buckets.0: media is target_bucket, and holds no uploads":               `"upload_buckets":["media"]}`,
			"upload_buckets.0: uploads is target_bucket, and holds no uploads":             `"target_bucket":"uploads"}`,
			"upload_buckets.1: archive is the bucket of the archive, and holds no uploads": `"upload_buckets":["uploads","archive"]}`,
			"upload_buckets.0: cold is the bucket of the archive, and holds no uploads":    `"upload_buckets":["cold"],"archive":{"bucket":"cold"}}`,
		} {
			require.ErrorContains(t, jobtest.CheckSpec(*jobType, begin+text), want)
		}
	}
}

// TestAnUploadIsItsOrganizations by its bucket and the first part of its key.
func TestAnUploadIsItsOrganizations(t *testing.T) {
	t.Parallel()
	const id = "5b0f155746a1b867a114e030"
	buckets := teardown.Buckets{TargetBucket: "media", UploadBuckets: []string{"uploads", "more"}, Archive: teardown.Archive{Bucket: "archive"}}
	for at, own := range map[[2]string]bool{
		{"uploads", id + "/a.png"}:                           true,
		{"more", id + "/b/a.png"}:                            true,
		{"media", id + "/a.png"}:                             false,
		{"archive", id + "/a.png"}:                           false,
		{"", id + "/a.png"}:                                  false,
		{"uploads", id}:                                      false,
		{"uploads", id + "0/a.png"}:                          false,
		{"uploads", "/" + id + "/a.png"}:                     false,
		{"uploads", "5b0f155746a1b867a114e031/" + id + "/a"}: false,
		{"uploads", ""}:                                      false,
	} {
		err := buckets.CheckUpload(id, &platformv1.ObjectReference{Bucket: at[0], Key: at[1]})
		require.Equal(t, own, err == nil, "%s: %v", at, err)
	}
}
