// Package codecs has the codecs of C libraries that image processes use: libwebp, and libheif and
// libavif to read. Where the system has no library of theirs, libwebp is translated to Go, and the
// others are compiled to WebAssembly.
//
// A program that imports it looks for these libraries at its start, and loads those that are
// there. So only programs import it that are image processes: see package process.
package codecs

import (
	"image"
	"io"

	"github.com/gen2brain/avif"
	"github.com/gen2brain/heic"
	"github.com/gen2brain/webp"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// All are the codecs.
func All() imaging.Codecs {
	return imaging.Codecs{EncodeWebP: encodeWebP, DecodeHEIC: heic.Decode, DecodeAVIF: avif.Decode}
}

// Libraries are the C libraries of the system that are used.
func Libraries() []string {
	var used []string
	for _, library := range []struct {
		name string
		lack func() error
	}{{"libwebp", webp.Dynamic}, {"libheif", heic.Dynamic}, {"libavif", avif.Dynamic}} {
		if library.lack() == nil {
			used = append(used, library.name)
		}
	}
	return used
}

// fastMethod is the last method of libwebp that does not weigh bits against errors: in Go, without
// vector instructions, that takes most of the time. Its files are 3 % larger.
const fastMethod = 2

func encodeWebP(to io.Writer, m image.Image, quality int) error {
	method := webp.DefaultMethod
	if webp.Dynamic() != nil {
		method = fastMethod
	}
	return webp.Encode(to, m, webp.Options{Quality: quality, Method: method})
}
