package endtoend_test

import (
	"bytes"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// photo is a JPEG file of 4000×3000 pixels, upright, as a telephone on its side
// makes it: turned, with the orientation and the position in its EXIF.
func photo(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	stored := imagingtest.Upright(imagingtest.Quadrants(random, 4000, 3000), 8)
	require.NoError(t, jpeg.Encode(&file, stored, &jpeg.Options{Quality: 90}))
	return imagingtest.EXIF{Orientation: 6}.InJPEG(file.Bytes())
}

func smallPhoto(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, imagingtest.Quadrants(random, 400, 300), nil))
	return file.Bytes()
}

func logo(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, imagingtest.Quadrants(random, 300, 200)))
	return file.Bytes()
}
