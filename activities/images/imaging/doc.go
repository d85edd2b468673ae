// Package imaging turns an uploaded picture into smaller ones: it decodes,
// turns upright, crops, resamples and encodes. It does no I/O and uses no cgo.
//
// The way of a picture: [Inspect] looks at its bytes and refuses what is no
// picture or too large, without decoding anything. [Decode] does the same and
// then decodes, turns the picture upright, crops, resamples, and converts its
// colors to sRGB. [Picture.Resize] makes smaller ones of it, [Picture.JPEG] and
// [Picture.PNG] encode. Nothing of the source's metadata reaches an encoder, so
// none is left in the result.
//
// Pixels are kept as planes of 8 bits: a JPEG stays in the YCbCr form it is
// stored in, its chroma at the resolution it has, from the decoder to the
// encoder. All resampling is in integers, so that workers on different
// processors make the same bytes.
//
// Decodes are bounded across the process: see [Limits].
package imaging
