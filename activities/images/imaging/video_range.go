package imaging

import (
	"image"
	"math"
)

// Lossy WebP and HEIC store samples as video does: luma from 16 to 235, chroma from 16 to 240 (ITU-R
// BT.601). Those of a [Picture] and of image.YCbCr have the full range, as in JFIF.
const (
	videoBlack  = 16
	videoLuma   = 219
	videoChroma = 224
	noChroma    = 128
)

// expandRange spreads samples of video to the full range, which the decoder does not convert to
// (golang.org/issue/40173).
func expandRange(img image.Image) {
	var ycc *image.YCbCr
	switch m := img.(type) {
	case *image.YCbCr:
		ycc = m
	case *image.NYCbCrA:
		ycc = &m.YCbCr
	default:
		return
	}
	var luma, chroma [256]uint8
	for v := range int32(256) {
		luma[v] = clamp(((v-videoBlack)*255*2 + videoLuma) / (videoLuma * 2))
		chroma[v] = clamp(noChroma + int32(math.Round(float64(v-noChroma)*255/videoChroma)))
	}
	for i, v := range ycc.Y {
		ycc.Y[i] = luma[v]
	}
	for i := range ycc.Cb {
		ycc.Cb[i], ycc.Cr[i] = chroma[ycc.Cb[i]], chroma[ycc.Cr[i]]
	}
}

// videoImage is the picture with samples of video, as lossy WebP stores it, if its chroma has half the
// width and height. Otherwise it is in RGB, of which the encoder makes them.
func (p *Picture) videoImage() image.Image {
	if p.model != modelYCC || p.subsampling() != image.YCbCrSubsampleRatio420 {
		return p.image()
	}
	var luma, chroma [256]uint8
	for v := range 256 {
		luma[v] = uint8(videoBlack + (v*videoLuma+255/2)/255)
		chroma[v] = uint8(noChroma + math.Round(float64(v-noChroma)*videoChroma/255))
	}
	img := image.NewNYCbCrA(image.Rect(0, 0, p.w, p.h), image.YCbCrSubsampleRatio420)
	for i, v := range p.planes[0].pix {
		img.Y[i], img.A[i] = luma[v], 255
	}
	for i, v := range p.planes[1].pix {
		img.Cb[i], img.Cr[i] = chroma[v], chroma[p.planes[2].pix[i]]
	}
	return img
}
