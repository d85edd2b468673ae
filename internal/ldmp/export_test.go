package ldmp

import "io"

// Scan and Decode are the two ways to read a frame.
var (
	Scan   = scan
	Decode = decode
)

// Frames cuts a stream into frames: each call gives the next one, and how many
// bytes of it were skipped.
func Frames(source io.Reader) func() ([]byte, int, error) {
	f := &frames{source: source}
	return f.next
}
