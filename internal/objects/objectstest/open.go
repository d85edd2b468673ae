package objectstest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// Config says how to reach the store of a stack.
func Config(s3 stack.S3) objects.Config {
	return objects.Config{AccessKey: s3.AccessKey, Endpoint: s3.Endpoint, Region: s3.Region, SecretKey: s3.SecretKey}
}

// Open makes a client of the store of a stack.
func Open(t testing.TB, s3 stack.S3) *objects.Store {
	t.Helper()
	store, err := objects.New(Config(s3))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// PutPicture puts a small picture into a store that no other has.
func PutPicture(t testing.TB, store *objects.Store, bucket, key string) {
	t.Helper()
	const side = 32
	first := rand.Uint32()
	picture := image.NewRGBA(image.Rect(0, 0, side, side))
	for n := range side * side {
		picture.SetRGBA(n%side, n/side, color.RGBA{R: uint8(first), G: uint8(first >> 8), B: uint8(first>>16) + uint8(n), A: 255})
	}
	var data bytes.Buffer
	err := png.Encode(&data, picture)
	if err == nil {
		_, err = store.Put(t.Context(), objects.Object{Bucket: bucket, Key: key, Data: data.Bytes(), ContentType: "image/png"})
	}
	if err != nil {
		t.Fatal(err)
	}
}
