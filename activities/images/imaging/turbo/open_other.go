//go:build !linux

package turbo

import "errors"

// Library is the C library: here there is none.
type Library struct{}

var errNone = errors.New("libjpeg-turbo is used on Linux alone")

// Open gives an error.
func Open() (*Library, error) { return nil, errNone }

// Decode gives an error.
func (*Library) Decode([]byte, int) (Planes, error) { return Planes{}, errNone }

// Encode gives an error.
func (*Library) Encode(Planes, int, bool) ([]byte, error) { return nil, errNone }

// EncodeRGB gives an error.
func (*Library) EncodeRGB([]byte, int, int, int, bool) ([]byte, error) { return nil, errNone }
