package process

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// request is what the pool sends before the bytes of a file.
type request struct {
	Task    imaging.Task   `json:"task"`
	Limits  imaging.Limits `json:"limits"`
	Memory  int64          `json:"memory"`  // bytes that the process may take
	Seconds int            `json:"seconds"` // of processor time
}

// answer is what a child sends: one with a picture for each output, then one that is the last.
type answer struct {
	Made *imaging.Made `json:"made,omitempty"` // its bytes follow
	Used time.Duration `json:"used"`           // processor time of the child up to now
	// Invalid and Limit are the texts of errors of package imaging, Failed that of another.
	Invalid string `json:"invalid,omitempty"`
	Limit   string `json:"limit,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

// Bounds of a frame. A header is small; a body is a file, or a picture of 4096×4096 pixels.
const (
	maxHeader = 1 << 20
	maxBody   = 256 << 20
)

// writeFrame writes a header as JSON and a body, each after its length in four bytes.
func writeFrame(to io.Writer, header any, body []byte) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	lengths := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	lengths = binary.BigEndian.AppendUint32(lengths, uint32(len(body)))
	for _, part := range [][]byte{lengths, text, body} {
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// readFrame reads what writeFrame wrote. It is io.EOF where there is nothing more.
func readFrame(from io.Reader, header any) (body []byte, err error) {
	var lengths [8]byte
	if _, err := io.ReadFull(from, lengths[:]); err != nil {
		return nil, err
	}
	head, rest := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if head > maxHeader || rest > maxBody {
		return nil, fmt.Errorf("a frame of %d and %d bytes is too long", head, rest)
	}
	text := make([]byte, head)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(text, header); err != nil {
		return nil, err
	}
	body = make([]byte, rest)
	if _, err := io.ReadFull(from, body); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return body, nil
}
