// Package imaging turns an uploaded picture into smaller ones: it decodes,
// turns upright, crops, resamples and encodes. It does no I/O and uses no cgo.
//
// The way of a picture: [Inspect] looks at its bytes and refuses what is no
// picture or too large, without decoding anything. [Make] does the same and
// then decodes once. Of each part that is wanted it makes the largest picture,
// upright and in sRGB, the smaller ones of that one, and encodes them. Nothing
// of the source's metadata reaches an encoder, so none is left in the result.
//
// Pixels are kept as planes of 8 bits: a JPEG stays in the YCbCr form it is
// stored in, its chroma at the resolution it has, from the decoder to the
// encoder. All resampling is in integers, so that workers on different
// processors make the same bytes.
//
// Decoders are fed by strangers: package process runs [Make] in a process of
// its own.
package imaging
