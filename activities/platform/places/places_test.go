package places_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func read(text string) (places.Places, error) {
	return places.FromEnv(func(name string) string { return map[string]string{places.Env: text}[name] })
}

func TestPlacesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	without, err := read("")
	require.NoError(t, err)
	require.Equal(t, places.Places{
		TargetBucket: "media", UploadBuckets: []string{"uploads"}, Imports: places.Imports{Quota: places.Quota{Files: 10_000, Bytes: 100 << 30}}, Archive: places.Archive{Bucket: "archive"},
		Exports: places.Exports{Bucket: "exports", PointsPerSecond: 500_000, MaxPoints: 1_000_000_000, Quota: places.Quota{Files: 10_000, Bytes: 100 << 30}},
	}, without)

	p, err := read(`{"target_bucket":"public","upload_buckets":["media","uploads"],"locations":[{"location":"west","influx_url":"http://127.0.0.1:8086"}]}`)
	require.NoError(t, err)
	require.Equal(t, []string{"media", "uploads"}, p.UploadBuckets)
	west, err := p.Location("west")
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8086", west.InfluxURL)
	_, err = p.Location("east")
	require.EqualError(t, err, "location east is not in DENDRA_PLACES of this worker")

	const server = `{"location":"west","influx_url":"http://127.0.0.1:8086"}`
	for text, want := range map[string]string{
		`{"upload_buckets":["media"]}`:                               "upload_buckets.0: media is target_bucket, and holds no uploads",
		`{"target_bucket":"uploads"}`:                                "upload_buckets.0: uploads is target_bucket, and holds no uploads",
		`{"upload_buckets":["uploads","archive"]}`:                   "upload_buckets.1: archive is the bucket of the archive, and holds no uploads",
		`{"upload_buckets":["cold"],"archive":{"bucket":"cold"}}`:    "upload_buckets.0: cold is the bucket of the archive, and holds no uploads",
		`{"locations":[{"location":"west"}]}`:                        "locations.0: neither influx_url nor mirrors is set",
		`{"locations":[` + server + `,` + server + `]}`:              "locations.1: another one is named west",
		`{"exports":{"bucket":"uploads"}}`:                           "exports.bucket: uploads is a bucket of other things",
		`{"location":[]}`:                                            `unknown key "location"`,
		`{"locations":[{"location":"west","influx_url":"nowhere"}]}`: "locations.0.influx_url",
		`media`: "JSON",
	} {
		_, err := read(text)
		require.ErrorContains(t, err, "DENDRA_PLACES: ", text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestAnUploadIsItsOrganizations by its bucket and the first part of its key.
func TestAnUploadIsItsOrganizations(t *testing.T) {
	t.Parallel()
	const id = "5b0f155746a1b867a114e030"
	p := places.Places{TargetBucket: "media", UploadBuckets: []string{"uploads", "more"}, Archive: places.Archive{Bucket: "archive"}}
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
		err := p.CheckUpload(id, &platformv1.ObjectReference{Bucket: at[0], Key: at[1]})
		require.Equal(t, own, err == nil, "%s: %v", at, err)
	}
}
