package images_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestBadUploads(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	photo := encodeJPEG(t, quadrants(t, 800, 600))
	for name, c := range map[string]struct {
		data  []byte
		class string
		part  string
	}{
		"bad/empty.jpg":     {nil, errclass.InvalidImage, "is empty (0 bytes)"},
		"bad/text.jpg":      {[]byte("no picture at all"), errclass.InvalidImage, "looks like plain text"},
		"bad/drawing.jpg":   {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), errclass.InvalidImage, "it says no size"},
		"bad/logo.svg":      {[]byte(`<svg viewBox="0 0 1 1"/>`), errclass.InvalidImage, "which is taken for logos alone"},
		"bad/cut-short.jpg": {photo[:len(photo)*2/3], errclass.InvalidImage, "damaged or cut short"},
		"bad/twice.jpg":     {append(bytes.Clone(photo[:len(photo)-2]), photo[bytes.Index(photo, []byte("\xff\xda")):]...), errclass.InvalidImage, "again or out of order"},
		"bad/bomb.png":      {imagingtest.Bomb(), errclass.ImageTooLarge, "30000×30000 = 900.0 megapixels"},
		"bad/huge.jpg":      {make([]byte, 60_000_001), errclass.ImageTooLarge, "60000001 bytes"},
	} {
		upload(t, store, name, c.data)
		_, err := typ.Handle(t.Context(), newRun(typ, images.PhotoSpec{Bucket: "uploads", Key: name, Prefix: "bad-uploads"}))
		jobtest.RequireFailure(t, err, c.class, true, "photo uploads/"+name+": ", c.part)
	}
	require.Empty(t, keysUnder(t, store, "bad-uploads"))
}

func TestUnusualUploads(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	palette := color.Palette{color.RGBA{R: 255, A: 255}, color.RGBA{B: 255, A: 255}}
	animation := gif.GIF{}
	for range 100 {
		animation.Image = append(animation.Image, image.NewPaletted(image.Rect(0, 0, 90, 70), palette))
		animation.Delay = append(animation.Delay, 1)
	}
	var moving bytes.Buffer
	require.NoError(t, gif.EncodeAll(&moving, &animation))
	deep := image.NewNRGBA64(image.Rect(0, 0, 90, 70))
	polyglot := append(encodeJPEG(t, quadrants(t, 90, 70)), "<script>alert(1)</script>"...)
	motion := append(encodeJPEG(t, quadrants(t, 90, 70)), bytes.Repeat([]byte("\xff\xda"), 300)...)
	for name, data := range map[string][]byte{
		"odd/motion.jpg":    motion,
		"odd/animation.gif": moving.Bytes(),
		"odd/deep.png":      encodePNG(t, deep),
		"odd/gray.jpg":      encodeJPEG(t, image.NewGray(image.Rect(0, 0, 90, 70))),
		"odd/polyglot.html": polyglot,
		"odd/pixel.png":     encodePNG(t, image.NewGray(image.Rect(0, 0, 1, 1))),
	} {
		upload(t, store, name, data)
		result, output := handle(t, typ, images.PhotoSpec{Bucket: "uploads", Key: name, Prefix: "odd"})
		require.Equal(t, int64(4), result.Counts["written"], name)
		for _, v := range output.Variants {
			data, _ := get(t, store, v.Key)
			require.NotContains(t, string(data), "script")
		}
	}
}

func TestMissingBucketsAndObjects(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	upload(t, store, "there.jpg", encodeJPEG(t, quadrants(t, 80, 60)))
	typ := images.PhotoVariants(store, pictures)
	try := func(spec images.PhotoSpec) error {
		_, err := typ.Handle(t.Context(), newRun(typ, spec))
		return err
	}
	jobtest.RequireFailure(t, try(images.PhotoSpec{Bucket: "no-bucket", Key: "a.jpg"}),
		errclass.BucketMissing, true, `photo no-bucket/a.jpg: bucket "no-bucket" does not exist on 127.0.0.1:`)
	jobtest.RequireFailure(t, try(images.PhotoSpec{Bucket: "uploads", Key: "there.jpg", TargetBucket: "no-target"}),
		errclass.BucketMissing, true, `photo uploads/there.jpg: bucket "no-target" does not exist on 127.0.0.1:`)
	jobtest.RequireFailure(t, try(images.PhotoSpec{Bucket: "uploads", Key: "not-yet.jpg"}),
		errclass.ObjectMissing, false, "photo uploads/not-yet.jpg: object uploads/not-yet.jpg does not exist on 127.0.0.1:")
}

func TestDeadStore(t *testing.T) {
	t.Parallel()
	address := "127.0.0.1:" + stacktest.FreePort(t)
	store, err := objects.New(objects.Config{AccessKey: "a", Endpoint: "http://" + address, SecretKey: "b"})
	require.NoError(t, err)
	typ := images.LogoAvatarVariants(store, pictures)
	_, err = typ.Handle(t.Context(), newRun(typ, images.LogoAvatarSpec{Bucket: "uploads", Key: "a.png"}))
	jobtest.RequireFailure(t, err, errclass.StoreUnreachable, false, "logo uploads/a.png: ", address, "cannot be reached")
}

func TestBadSpecs(t *testing.T) {
	t.Parallel()
	photo, logo := images.PhotoVariants(nil, nil), images.LogoAvatarVariants(nil, nil)
	for _, c := range []struct {
		typ  job.Type
		spec string
		part string
	}{
		{photo, `{"key":"a.jpg"}`, `spec: key "bucket" is missing`},
		{photo, `{"bucket":"b"}`, `spec: key "key" is missing`},
		{photo, `{"bucket":"b","key":""}`, `spec.key: the text is empty`},
		{photo, `{"bucket":"b","key":"a\nb"}`, `spec.key: "a\nb" does not match the pattern`},
		{photo, `{"bucket":"b","key":"a","colour":1}`, `spec.colour: unknown key "colour"`},
		{photo, `{"bucket":"b","key":"a","prefix":"../x"}`, `spec.prefix: "../x" does not match the pattern`},
		{photo, `{"bucket":"b","key":"a","prefix":"x/"}`, `spec.prefix: "x/" does not match the pattern`},
		{photo, `{"bucket":"b","key":"a","quality":101}`, "spec.quality: 101 is more than 100"},
		{photo, `{"bucket":"b","key":"a","quality":-1}`, "spec.quality: -1 is less than 1"},
		{photo, `{"bucket":"b","key":"a","variants":[{"name":"a b","size":9}]}`, `spec.variants.0.name: "a b" does not match the pattern`},
		{photo, `{"bucket":"b","key":"a","variants":[{"name":"a","size":0}]}`, "spec.variants.0.size: 0 is less than 1"},
		{photo, `{"bucket":"b","key":"a","variants":[{"name":"a","size":5000}]}`, "spec.variants.0.size: 5000 is more than 4096"},
		{photo, `{"bucket":"b","key":"a","variants":[{"name":"a","size":1},{"name":"a","size":2}]}`, "taken"},
		{photo, `{"bucket":"b","key":"a","target_bucket":"b"}`, "target_bucket: b is the bucket of the upload, and variants are written to another one"},
		{logo, `{"bucket":"media","key":"a"}`, "target_bucket: media is the bucket of the upload"},
		{logo, `{"bucket":"b","key":"a","quality":80}`, `spec.quality: unknown key "quality"`},
		{logo, `{"bucket":"b","key":"a","variants":[{"name":"x","size":-2}]}`, "spec.variants.0.size: -2 is less than 1"},
	} {
		require.ErrorContains(t, jobtest.CheckSpec(c.typ, c.spec), c.part)
	}
}

// The description of the types needs no store.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	for _, typ := range []job.Type{images.PhotoVariants(nil, nil), images.LogoAvatarVariants(nil, nil)} {
		require.NoError(t, job.CheckTypeName(typ.Name))
		require.True(t, typ.Allows(job.ModeOneShot))
		require.True(t, typ.Allows(job.ModeQueued))
		require.False(t, typ.Allows(job.ModeContinuous))
		require.False(t, typ.Allows(job.ModeRecurring))
	}
}
