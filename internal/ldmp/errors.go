package ldmp

import "fmt"

// MalformedError is a frame that is no record. The connection is good still: the
// next frame can be read, and the server waits for an acknowledgement of this one.
type MalformedError struct {
	// Reason is one clause: what is wrong.
	Reason string
	// Raw is the frame as it came, without its NUL, cut at [MaxFrame].
	Raw []byte
	// Station and Table are what the frame says, as far as it does.
	Station, Table string
}

// Error implements error.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("ldmp: a frame of %d bytes is no record: %s", len(e.Raw), e.Reason)
}
