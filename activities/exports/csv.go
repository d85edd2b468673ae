package exports

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// csvFile is a table of RFC 4180 in UTF-8: one header, times of RFC 3339 in UTC, numbers as
// InfluxDB writes them. A field that has no value is empty, an empty text is "".
type csvFile struct {
	out     bytes.Buffer
	packer  io.Writer
	closers []io.Closer
	line    []byte
	text    []byte
}

func newCSV(of Series, compression Compression) (file, error) {
	f := &csvFile{}
	f.packer = &f.out
	switch compression {
	case CompressionGzip:
		packer := gzip.NewWriter(&f.out)
		f.packer, f.closers = packer, []io.Closer{packer}
	case CompressionZstd:
		// One goroutine less, and the same bytes each time.
		packer, err := zstd.NewWriter(&f.out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		f.packer, f.closers = packer, []io.Closer{packer}
	case CompressionZip:
		archive := zip.NewWriter(&f.out)
		member, err := archive.CreateHeader(&zip.FileHeader{Name: nameOf(of) + ".csv", Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		f.packer, f.closers = member, []io.Closer{archive}
	case CompressionNone:
	}
	f.line = append(f.line, "time"...)
	for _, c := range of.Columns {
		f.line = append(f.line, ',')
		f.line = appendCell(f.line, c.heading())
	}
	return f, f.flush()
}

// heading is the name of a column with its units: AT_C_Avg [DegreeCelsius].
func (c Column) heading() string {
	if c.Units == "" {
		return c.Field
	}
	return c.Field + " [" + c.Units + "]"
}

func (f *csvFile) row(at int64, values []jsontext.Value) (err error) {
	f.line = time.Unix(0, at).UTC().AppendFormat(f.line, time.RFC3339Nano)
	for _, v := range values {
		f.line = append(f.line, ',')
		switch v.Kind() {
		case 'n':
		case '"':
			if f.text, err = jsontext.AppendUnquote(f.text[:0], v); err != nil {
				return err
			}
			f.line = appendCell(f.line, string(f.text))
		default:
			f.line = append(f.line, v...)
		}
	}
	return f.flush()
}

func (f *csvFile) flush() error {
	_, err := f.packer.Write(append(f.line, '\r', '\n'))
	f.line = f.line[:0]
	return err
}

// appendCell appends a text, in quotes where RFC 4180 wants them, and if it is empty.
func appendCell(line []byte, text string) []byte {
	if text != "" && !strings.ContainsAny(text, ",\"\r\n") {
		return append(line, text...)
	}
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(text, `"`, `""`)...)
	return append(line, '"')
}

func (f *csvFile) bytes() int64 { return int64(f.out.Len()) }

func (f *csvFile) close() ([]byte, error) {
	for _, c := range f.closers {
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return f.out.Bytes(), nil
}
