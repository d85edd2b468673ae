package ldmp

// Scan and Decode are the two ways to read a frame.
var (
	Scan   = scan
	Decode = decode
)
