package ldmp

import (
	"bytes"
	"fmt"
	"io"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// MaxFrame is the most bytes of a record. A longer one is malformed, of which
	// the beginning is kept and the rest skipped. As a message, a record of this
	// size stays below the message limit of a NATS server.
	MaxFrame = 128 << 10
	// maxSkip is how much is skipped in search of the end of a frame before the
	// connection is given up.
	maxSkip = 64 << 20
	// firstBuffer is how much is read at a time, until a longer frame comes.
	firstBuffer = 16 << 10
)

// frames cuts a stream at NUL bytes, in bounded memory.
type frames struct {
	source io.Reader
	// waiting is called before each read, and told whether a frame has begun.
	waiting func(begun bool)

	buffer  []byte
	start   int // of what is not returned yet
	scanned int // no NUL before it
	end     int // of what was read
}

// next returns the next frame without its NUL, which is good until the next call.
// Empty frames are passed over. Of a frame beyond MaxFrame it returns the
// beginning, and how many bytes more it had.
func (f *frames) next() (frame []byte, skipped int, err error) {
	for {
		if at := bytes.IndexByte(f.buffer[f.scanned:f.end], 0); at >= 0 {
			frame = f.buffer[f.start : f.scanned+at]
			f.start = f.scanned + at + 1
			f.scanned = f.start
			if len(frame) == 0 {
				continue
			}
			kept := min(len(frame), MaxFrame)
			return frame[:kept], len(frame) - kept, nil
		}
		f.scanned = f.end
		if f.end-f.start > MaxFrame {
			return f.skip()
		}
		if err := f.read(); err != nil {
			return nil, 0, err
		}
	}
}

// read reads more, after making room for it.
func (f *frames) read() error {
	if f.start > 0 {
		f.end = copy(f.buffer, f.buffer[f.start:f.end])
		f.scanned -= f.start
		f.start = 0
	}
	if f.end == len(f.buffer) {
		// At most twice MaxFrame: beyond that next does not ask for more.
		f.buffer = append(f.buffer, make([]byte, max(firstBuffer, len(f.buffer)))...)
	}
	if f.waiting != nil {
		f.waiting(f.end > 0)
	}
	n, err := f.source.Read(f.buffer[f.end:])
	f.end += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// skip reads on to the end of a frame that is too long, and keeps its beginning.
func (f *frames) skip() ([]byte, int, error) {
	frame := bytes.Clone(f.buffer[f.start : f.start+MaxFrame])
	skipped := f.end - f.start - MaxFrame
	for {
		f.start, f.scanned, f.end = 0, 0, 0
		if f.waiting != nil {
			f.waiting(true)
		}
		n, err := f.source.Read(f.buffer)
		if at := bytes.IndexByte(f.buffer[:n], 0); at >= 0 {
			f.start, f.scanned, f.end = at+1, at+1, n
			return frame, skipped + at, nil
		}
		skipped += n
		switch {
		case skipped > maxSkip:
			return nil, 0, job.Fail(errclass.LdmpEndless, "a record has no end after %d bytes, and begins with %.200q", MaxFrame+skipped, frame)
		case n == 0 && err == nil:
			return nil, 0, io.ErrNoProgress
		case n == 0:
			return nil, 0, err
		}
	}
}

func tooLong(frame []byte, skipped int) *MalformedError {
	return &MalformedError{
		Reason: fmt.Sprintf("it has %d bytes, more than %d", len(frame)+skipped, MaxFrame), Raw: bytes.Clone(frame),
	}
}
