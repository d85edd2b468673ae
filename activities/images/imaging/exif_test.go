package imaging_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// The time of a photo has the zone that EXIF names, and none without.
func TestTimeOfPhoto(t *testing.T) {
	t.Parallel()
	photo, drawing := encodeJPEG(t, scene(20, 16), 80), encodePNG(t, scene(20, 16))
	for _, c := range []struct{ taken, offset, want string }{
		{"2026:07:08 09:10:11", "", "2026-07-08T09:10:11"},
		{"2026:07:08 09:10:11", "+02:00", "2026-07-08T09:10:11+02:00"},
		{"2026:07:08 09:10:11", "-09:30", "2026-07-08T09:10:11-09:30"},
		{"2026:07:08 09:10:11", "CEST", "2026-07-08T09:10:11"},
		{"2026:07:08 09:10:11", "   :  ", "2026-07-08T09:10:11"},
		{"0000:00:00 00:00:00", "+02:00", ""},
		{"    :  :     :  :  ", "+02:00", ""},
		{"2026:02:30 09:10:11", "", ""},
		{"yesterday", "", ""},
		{"", "+02:00", ""},
	} {
		e := imagingtest.EXIF{Orientation: 1, Taken: c.taken, Offset: c.offset}
		for name, file := range map[string][]byte{"JPEG": e.InJPEG(photo), "PNG": withChunk(drawing, "eXIf", e.TIFF(binary.LittleEndian))} {
			info, err := imaging.Inspect(file, imaging.DefaultLimits())
			require.NoError(t, err)
			require.Equal(t, c.want, info.Taken, "%s with %q, %q", name, c.taken, c.offset)
		}
	}
}

func TestRightsOfPhoto(t *testing.T) {
	t.Parallel()
	// Two parts of a copyright, a line break, and what is no UTF-8.
	e := imagingtest.EXIF{Orientation: 6, Artist: "Ann\r\nExample \xff", Copyright: "© Ann\x00© Station 42"}
	info, err := imaging.Inspect(e.InJPEG(encodeJPEG(t, scene(20, 16), 80)), imaging.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, []string{"Ann Example \ufffd", "© Ann © Station 42"}, []string{info.Artist, info.Copyright})
	require.Equal(t, imaging.Rotate90, info.Orientation)
	e.Artist = string(bytes.Repeat([]byte("a"), 1001))
	info, err = imaging.Inspect(e.InJPEG(encodeJPEG(t, scene(20, 16), 80)), imaging.DefaultLimits())
	require.NoError(t, err)
	require.Empty(t, info.Artist, "too long")
}

// What is broken is as if it were not there.
func TestBrokenEXIF(t *testing.T) {
	t.Parallel()
	whole := imagingtest.EXIF{Orientation: 6, Taken: "2026:07:08 09:10:11", Offset: "+02:00", Artist: "Ann Example"}.TIFF(binary.BigEndian)
	drawing := encodePNG(t, scene(20, 16))
	random := seeded(t)
	for cut := range len(whole) {
		broken := bytes.Clone(whole)
		broken[random.IntN(len(broken))] ^= byte(1 << random.IntN(8))
		for _, exif := range [][]byte{whole[:cut], broken} {
			info, err := imaging.Inspect(withChunk(drawing, "eXIf", exif), imaging.DefaultLimits())
			require.NoError(t, err)
			require.NotContains(t, info.Taken+info.Artist+info.Copyright, imagingtest.Place)
		}
	}
}
