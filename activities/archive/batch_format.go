package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// Range is a range of sequence numbers, both ends included.
type Range struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Count is how many numbers a range has.
func (r Range) Count() uint64 { return r.Last - r.First + 1 }

// String writes "7" or "7–12".
func (r Range) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d–%d", r.First, r.Last)
}

// Batch is the record of a batch.
type Batch struct {
	Incarnation Incarnation `json:"incarnation"`
	Range
	// From and To are when the stream took the first and the last of its messages.
	// The message with number Last was there when the batch was made.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Messages is how many are archived.
	Messages int64 `json:"messages"`
	// Replays is how many are not, since they were published from the archive.
	Replays int64 `json:"replays,omitempty"`
	// Gone are the numbers that the stream did not hold any more: their messages
	// were deleted, purged or expired.
	Gone []Range `json:"gone,omitempty"`
	// Objects hold the messages.
	Objects []Object `json:"objects"`
}

// Object describes an object with messages.
type Object struct {
	Key      string    `json:"key"`
	Messages int64     `json:"messages"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// Bytes and ContentSHA256 are of the lines, Size and SHA256 of the compressed
	// object.
	Bytes         int64  `json:"bytes"`
	ContentSHA256 string `json:"content_sha256"`
	Size          int64  `json:"size"`
	SHA256        string `json:"sha256"`

	data []byte
}

// Build makes a batch of all messages that a stream holds in a range, in order.
// The same messages always make the same bytes.
func Build(incarnation Incarnation, of Range, messages []pipeline.Stored) (Batch, error) {
	batch := Batch{Incarnation: incarnation, Range: of, Objects: []Object{}}
	if len(messages) > 0 {
		batch.From, batch.To = messages[0].Time, messages[len(messages)-1].Time
	}
	lines := map[Partition]*bytes.Buffer{}
	var order []Partition
	entries := map[Partition]*Object{}
	next := of.First
	for _, m := range messages {
		if m.Sequence < next || m.Sequence > of.Last {
			return Batch{}, fmt.Errorf("message %d of %s is out of order, or not one of %s", m.Sequence, incarnation, of)
		}
		if m.Sequence > next {
			batch.Gone = append(batch.Gone, Range{next, m.Sequence - 1})
		}
		next = m.Sequence + 1
		if pipeline.IsReplay(m.Header) {
			batch.Replays++
			continue
		}
		batch.Messages++
		p := partitionOf(m)
		b, found := lines[p]
		if !found {
			b = &bytes.Buffer{}
			lines[p], entries[p] = b, &Object{From: m.Time}
			order = append(order, p)
		}
		line, err := AppendLine(b.AvailableBuffer(), m)
		if err != nil {
			return Batch{}, err
		}
		b.Write(line)
		entries[p].Messages++
		entries[p].To = m.Time
	}
	if next <= of.Last {
		batch.Gone = append(batch.Gone, Range{next, of.Last})
	}
	// One goroutine and one level, so that the bytes depend on nothing else.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return Batch{}, fmt.Errorf("zstd: %w", err)
	}
	defer func() { _ = encoder.Close() }() // It has written nothing of its own.
	for _, p := range order {
		content := lines[p].Bytes()
		o := entries[p]
		o.Key = dataKey(p, incarnation, batch.First, batch.Last)
		o.Bytes, o.ContentSHA256 = int64(len(content)), objects.Hash(content)
		o.data = encoder.EncodeAll(content, nil)
		o.Size, o.SHA256 = int64(len(o.data)), objects.Hash(o.data)
		batch.Objects = append(batch.Objects, *o)
		lines[p] = nil // compressed, and not needed any more
	}
	return batch, nil
}

// encode writes the record of a batch: it has no time of writing and no writer,
// so that whoever writes it writes the same.
func (b Batch) encode() ([]byte, error) {
	text, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return nil, fmt.Errorf("record of batch %s of %s: %w", b.Range, b.Incarnation, err)
	}
	return append(text, '\n'), nil
}

// check reports a record that does not add up.
func (b Batch) check() error {
	accounted := uint64(b.Messages) + uint64(b.Replays)
	for _, r := range b.Gone {
		if r.First < b.First || r.Last > b.Last || r.First > r.Last {
			return fmt.Errorf("numbers %s that were gone are not within it", r)
		}
		accounted += r.Count()
	}
	inObjects := int64(0)
	for _, o := range b.Objects {
		data, ok := ParseDataKey(o.Key)
		if !ok || data.Incarnation != b.Incarnation || data.First != b.First || data.Last != b.Last {
			return fmt.Errorf("object %s is not of it", o.Key)
		}
		inObjects += o.Messages
	}
	switch {
	case b.First == 0 || b.First > b.Last:
		return fmt.Errorf("%d to %d is no range", b.First, b.Last)
	case inObjects != b.Messages:
		return fmt.Errorf("its objects have %d messages, not %d", inObjects, b.Messages)
	case accounted != b.Count():
		return fmt.Errorf("it has %d numbers, and accounts for %d", b.Count(), accounted)
	}
	return nil
}

// maxContent bounds what is decompressed, against an object that is something else.
const maxContent = 1 << 30

// decompress gives the lines of an object.
func decompress(data []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxContent))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer decoder.Close()
	content, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	return content, nil
}
