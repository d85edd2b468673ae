package process_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/codecs"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// upload is a file of the corpus.
type upload struct {
	name  string
	data  []byte
	shows [4]color.NRGBA // its quadrants, from left to right and down; not of what is refused
}

// corpusSize is that of all pictures: odd, so that nothing is even by chance.
var corpusSize = image.Pt(67, 49)

// quadrants are the colors of pictures of the corpus. Half are there with alpha.
var quadrants = [4]color.NRGBA{{R: 220, G: 30, B: 30, A: 255}, {R: 30, G: 200, B: 30, A: 255}, {R: 30, G: 30, B: 220, A: 255}, {R: 220, G: 210, B: 30, A: 255}}

// secrets are in the metadata of uploads, and in nothing that is made.
var secrets = []string{imagingtest.Place, "Ann Example", "<script>", "PK\x03\x04", "xmpmeta"}

func quadrantAt(x, y int) int { return 2*(2*y/corpusSize.Y) + 2*x/corpusSize.X }

// fill fills a picture with the quadrants.
func fill[T draw.Image](img T) T {
	for y := range corpusSize.Y {
		for x := range corpusSize.X {
			img.Set(x, y, quadrants[quadrantAt(x, y)])
		}
	}
	return img
}

// corpus is a file of every kind that is read.
func corpus(t *testing.T) (files []upload) {
	t.Helper()
	add := func(name string, data []byte, shows [4]color.NRGBA) { files = append(files, upload{name, data, shows}) }
	bounds := image.Rectangle{Max: corpusSize}
	asJPEG := func(img image.Image) []byte {
		var out bytes.Buffer
		require.NoError(t, jpeg.Encode(&out, img, &jpeg.Options{Quality: 95}))
		return out.Bytes()
	}
	inverse := [9]uint16{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}
	for orientation := uint16(1); orientation <= 8; orientation++ {
		exif := imagingtest.EXIF{Orientation: orientation, Taken: "2026:07:08 09:10:11", Artist: "Ann Example"}
		stored := imagingtest.Upright(fill(image.NewRGBA(bounds)), inverse[orientation])
		add(fmt.Sprintf("4:2:0, orientation %d", orientation), exif.InJPEG(asJPEG(stored)), quadrants)
		gray := image.NewGray(stored.Rect)
		draw.Draw(gray, gray.Rect, stored, image.Point{}, draw.Src)
		add(fmt.Sprintf("gray, orientation %d", orientation), exif.InJPEG(asJPEG(gray)), grays())
		var drawing bytes.Buffer
		require.NoError(t, png.Encode(&drawing, stored))
		add(fmt.Sprintf("PNG, orientation %d", orientation), imagingtest.WithChunk(drawing.Bytes(), "eXIf", exif.TIFF(binary.LittleEndian)), quadrants)
	}
	add("polyglot JPEG", append(asJPEG(fill(image.NewRGBA(bounds))), "<script>alert(1)</script>PK\x03\x04"...), quadrants)
	files = append(files, corpusOfPNG(t)...)

	frame := fill(image.NewPaletted(bounds, color.Palette{quadrants[0], quadrants[1], quadrants[2], quadrants[3]}))
	var animation bytes.Buffer
	require.NoError(t, gif.EncodeAll(&animation, &gif.GIF{Image: []*image.Paletted{frame, image.NewPaletted(bounds, frame.Palette)}, Delay: []int{5, 5}}))
	add("GIF", append(animation.Bytes(), "<script>"...), quadrants)

	through := fill(image.NewNRGBA(bounds))
	draw.Draw(through, image.Rect(0, 0, 34, 49), image.Transparent, image.Point{}, draw.Src)
	for name, img := range map[string]image.Image{"WebP": fill(image.NewRGBA(bounds)), "WebP with transparency": through} {
		var out bytes.Buffer
		require.NoError(t, codecs.All().EncodeWebP(&out, img, 95))
		shows := quadrants
		if name != "WebP" {
			shows[0], shows[2] = color.NRGBA{}, color.NRGBA{}
		}
		add(name, append(out.Bytes(), "<script>"...), shows)
	}
	add("HEIC", imagingtest.HEIC(), quadrants)
	add("AVIF", imagingtest.AVIF(), quadrants)
	return files
}

// grays are the quadrants without their colors.
func grays() (all [4]color.NRGBA) {
	for i, c := range quadrants {
		y, _ := color.GrayModel.Convert(c).(color.Gray)
		all[i] = color.NRGBA{R: y.Y, G: y.Y, B: y.Y, A: 255}
	}
	return all
}

// corpusOfPNG has each color type in each of its depths (PNG 3rd edition, 11.2.1), plain and
// interlaced, and with a transparent color.
func corpusOfPNG(t *testing.T) (files []upload) {
	t.Helper()
	const gray, rgb, indexed, grayAlpha, rgba = 0, 2, 3, 4, 6
	var palette []byte
	for _, c := range quadrants {
		palette = append(palette, c.R, c.G, c.B)
	}
	for colorType, depths := range map[int][]int{gray: {1, 2, 4, 8, 16}, rgb: {8, 16}, indexed: {1, 2, 4, 8}, grayAlpha: {8, 16}, rgba: {8, 16}} {
		for _, depth := range depths {
			most := uint32(1)<<depth - 1
			scaled := func(v uint8) uint16 { return uint16((uint32(v)*most + 127) / 255) }
			level := func(v uint8) uint8 { return uint8(uint32(scaled(v)) * 255 / most) }
			for variant := range 4 {
				interlaced, transparent := variant&1 > 0, variant&2 > 0
				shows := quadrants
				p := imagingtest.PNG{Width: corpusSize.X, Height: corpusSize.Y, Depth: depth, ColorType: colorType, Interlaced: interlaced}
				p.Sample = func(x, y, channel int) uint16 {
					at := quadrantAt(x, y)
					c := quadrants[at]
					switch {
					case colorType == indexed:
						return uint16(at & int(most))
					case colorType == grayAlpha && channel == 1, channel == 3:
						if transparent && at == 0 {
							return 0
						}
						return uint16(most)
					case colorType == gray || colorType == grayAlpha:
						return scaled(grays()[at].R)
					}
					return scaled([3]uint8{c.R, c.G, c.B}[channel])
				}
				for i := range shows {
					switch {
					case colorType == indexed && depth == 1:
						shows[i] = quadrants[i&1]
					case colorType == gray || colorType == grayAlpha:
						v := level(grays()[i].R)
						shows[i] = color.NRGBA{R: v, G: v, B: v, A: 255}
					}
				}
				if colorType == indexed {
					p.Palette = palette[:3*min(4, most+1)]
				}
				if transparent {
					seenThrough := shows[0]
					switch colorType {
					case gray:
						p.Transparency = binary.BigEndian.AppendUint16(nil, scaled(grays()[0].R))
					case rgb:
						for _, v := range [3]uint8{quadrants[0].R, quadrants[0].G, quadrants[0].B} {
							p.Transparency = binary.BigEndian.AppendUint16(p.Transparency, scaled(v))
						}
					case indexed:
						p.Transparency = []byte{0}
					}
					for i := range shows {
						if shows[i] == seenThrough {
							shows[i] = color.NRGBA{}
						}
					}
				}
				file := imagingtest.WithChunk(p.Encode(t), "tEXt", []byte("Comment\x00<script>xmpmeta"))
				files = append(files, upload{
					fmt.Sprintf("PNG of type %d, depth %d, interlaced %v, transparent %v", colorType, depth, interlaced, transparent),
					append(file, "PK\x03\x04"...), shows,
				})
			}
		}
	}
	return files
}

// bombs are files that ask for more than they are.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	zero := func(int, int, int) uint16 { return 0 }
	wide := imagingtest.PNG{Width: 1 << 20, Height: 1, Depth: 1, Sample: zero}
	header := imagingtest.PNG{Width: 1, Height: 1, Depth: 1, Sample: zero}.Encode(t)
	large := imagingtest.AppendChunk(bytes.Clone(header[:8]), "IHDR", []byte{0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30, 1, 0, 0, 0, 0})
	canvas := append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\xff\xff\xff\xff\x00"), 8)
	heic := bytes.Clone(imagingtest.HEIC())
	at := bytes.LastIndex(heic, []byte("ispe")) + 8 // The first one is that of a tile.
	binary.BigEndian.PutUint32(heic[at:], 60_000)
	binary.BigEndian.PutUint32(heic[at+4:], 60_000)
	return map[string][]byte{
		"PNG of 1,048,576×1":   wide.Encode(t),
		"PNG of 30,000×30,000": append(large, header[33:]...),
		"GIF of 65,535×65,535": canvas,
		"WebP of 16,384²":      []byte("RIFF\x20\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\x3f\x00\xff\x3f\x00VP8L\x05\x00\x00\x00\x2f\xff\xff\xff\x0f\x00"),
		"HEIC of 60,000²":      heic,
	}
}

// mutants are a file cut short somewhere, and with bits flipped.
func mutants(random *rand.Rand, u upload, n int) (files []upload) {
	for range n {
		data := bytes.Clone(u.data)
		for range 1 + random.IntN(4) {
			data[random.IntN(len(data))] ^= byte(1 << random.IntN(8))
		}
		cut := u.data[:random.IntN(len(u.data))]
		files = append(files, upload{name: u.name + " with flipped bits", data: data}, upload{name: u.name + " cut short", data: cut})
	}
	return files
}

// outputs of every file of the corpus: in all formats, whole and cut.
func outputs() imaging.Task {
	return imaging.Task{Outputs: []imaging.Wanted{
		{Name: "png", Width: 48, Fit: imaging.Inside, Format: imaging.PNG},
		{Name: "jpeg", Width: 48, Fit: imaging.Inside, Format: imaging.JPEG, Quality: 90},
		{Name: "webp", Width: 48, Fit: imaging.Inside, Format: imaging.WebP, Quality: 90},
		{Name: "square", Width: 40, Height: 40, Fit: imaging.Cover, FocusOn: imaging.Entropy, Format: imaging.JPEG, Quality: 82},
		{Name: "look", Fit: imaging.Inside, Format: imaging.LookFormat},
	}}
}

// requireShown checks the middles of the quadrants. What is transparent is white in a JPEG.
func requireShown(t *testing.T, u upload, name string, img image.Image) {
	t.Helper()
	require.Equal(t, 48, img.Bounds().Dx(), "%s of %s", name, u.name)
	require.InDelta(t, 35.5, img.Bounds().Dy(), 0.5, "%s of %s", name, u.name)
	for i, want := range u.shows {
		at := image.Pt(12+24*(i%2), 9+17*(i/2))
		got, _ := color.NRGBAModel.Convert(img.At(at.X, at.Y)).(color.NRGBA)
		if want.A == 0 && name == "jpeg" {
			want = color.NRGBA{R: 255, G: 255, B: 255, A: 255}
		}
		require.InDelta(t, want.A, got.A, 3, "alpha of quadrant %d, %s of %s", i, name, u.name)
		if want.A == 0 {
			continue
		}
		for c, pair := range [3][2]uint8{{want.R, got.R}, {want.G, got.G}, {want.B, got.B}} {
			require.InDelta(t, pair[0], pair[1], 16, "channel %d of quadrant %d, %s of %s: %v, not %v", c, i, name, u.name, got, want)
		}
	}
}

// Every kind of file is read as it is, and what is broken fails one run: no process dies, none
// takes longer than it may, and nothing of the metadata is left.
func TestCorpus(t *testing.T) {
	t.Parallel()
	pool := newPool(t, process.Settings{Processes: 2, Seconds: 20})
	for name, data := range bombs(t) {
		_, err := pool.Make(t.Context(), data, imaging.DefaultLimits(), outputs())
		var limit *imaging.LimitError
		require.ErrorAs(t, err, &limit, name)
	}
	random := stacktest.Random(t)
	for _, u := range corpus(t) {
		broken := mutants(random, u, stacktest.Size(1, 200))
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			made, err := pool.Make(t.Context(), u.data, imaging.DefaultLimits(), outputs())
			require.NoError(t, err)
			require.Len(t, made, len(outputs().Outputs))
			for _, m := range made {
				requireMade(t, u, outputs().Outputs[m.Output], m.Data)
			}
			for _, mutant := range broken {
				requireMadeOrRefused(t, pool, mutant)
			}
		})
	}
}

// A WebP gets no longer than its format allows, whatever the photo.
func TestAWebPOfALongPicture(t *testing.T) {
	t.Parallel()
	var long bytes.Buffer
	require.NoError(t, png.Encode(&long, image.NewGray(image.Rect(0, 0, 48, 20_000))))
	task := imaging.Task{Outputs: []imaging.Wanted{{Width: 48, Fit: imaging.Inside, Format: imaging.WebP, Quality: 80}}}
	made, err := newPool(t, process.Settings{Processes: 1}).Make(t.Context(), long.Bytes(), imaging.DefaultLimits(), task)
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Equal(t, [2]int{39, 16_383}, [2]int{made[0].Width, made[0].Height})
}

// requireMade checks pixels and privacy of what was made.
func requireMade(t *testing.T, u upload, w imaging.Wanted, data []byte) {
	t.Helper()
	for _, secret := range append(slices.Clone(secrets), "Exif", "eXIf", "ICC", "tEXt") {
		require.NotContains(t, string(data), secret, "%s of %s", w.Name, u.name)
	}
	if w.Fit == imaging.Cover || w.Format == imaging.LookFormat {
		return
	}
	if w.Format == imaging.WebP { // Go's decoder leaves the range of video.
		engine, err := imaging.OpenEngine(imaging.Standard, codecs.All())
		require.NoError(t, err)
		task := imaging.Task{Outputs: []imaging.Wanted{{Width: 48, Fit: imaging.Inside, Format: imaging.PNG}}}
		require.NoError(t, engine.Make(t.Context(), data, imaging.DefaultLimits(), task, func(m imaging.Made) error {
			data = m.Data
			return nil
		}))
	}
	decode := png.Decode
	if w.Format == imaging.JPEG {
		decode = jpeg.Decode
	}
	img, err := decode(bytes.NewReader(data))
	require.NoError(t, err)
	requireShown(t, u, w.Name, img)
}

// requireMadeOrRefused makes pictures of what may be broken.
func requireMadeOrRefused(t *testing.T, pool *process.Pool, u upload) {
	t.Helper()
	_, err := pool.Make(t.Context(), u.data, imaging.DefaultLimits(), outputs())
	if err == nil {
		return
	}
	if died := (*process.DiedError)(nil); errors.As(err, &died) && (strings.HasPrefix(u.name, "HEIC") || strings.HasPrefix(u.name, "AVIF")) {
		return // Its frames may be larger than its header says.
	}
	var invalid *imaging.InvalidError
	var limit *imaging.LimitError
	require.True(t, errors.As(err, &invalid) || errors.As(err, &limit), "%s: %v: %x", u.name, err, u.data)
	require.NotContains(t, err.Error(), "\n", u.name)
	require.NotContains(t, err.Error(), "takes", "%s took too long: %x", u.name, u.data)
}
