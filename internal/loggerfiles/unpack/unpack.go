// Package unpack opens files that are compressed (gzip, RFC 1952; Zstandard, RFC 8878)
// or in a zip (APPNOTE 6.3), which their first bytes tell.
package unpack

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

const (
	readAhead = 256 << 10
	// maxDirectory bounds what is read of the list of files of a zip: it is in memory.
	maxDirectory = 16 << 20
	// maxWindow bounds the memory of a decoder. It is the most that zstd uses unless told
	// otherwise.
	maxWindow = 8 << 20
)

// File is a file of an object: the object itself, or one in a zip.
type File struct {
	// Name is the path in the zip, "" of an object that is none.
	Name string
	open func() (io.ReadCloser, error)
}

// Files lists the files of an object, in the order of their names. Of a zip, those are
// in a folder, or in all folders if it is "". Hidden files and those of macOS are left
// out. Errors of the object are as it gives them, others are [loggerfiles.FormatError].
func Files(object io.ReaderAt, size int64, folder string) ([]File, error) {
	source := &source{from: object}
	var begin [4]byte
	if _, err := source.ReadAt(begin[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(begin[:], []byte("PK\x03\x04")) {
		return []File{{open: func() (io.ReadCloser, error) {
			return source.decompress("", io.NopCloser(io.NewSectionReader(source, 0, size)))
		}}}, nil
	}
	source.budget = maxDirectory
	archive, err := zip.NewReader(source, size)
	if err != nil {
		return nil, source.failure("zip", err)
	}
	source.budget = 0
	if folder = strings.Trim(folder, "/"); folder != "" {
		folder += "/"
	}
	var files []File
	for _, member := range archive.File {
		if !strings.HasPrefix(member.Name, folder) || hidden(member.Name) {
			continue
		}
		files = append(files, File{Name: member.Name, open: func() (io.ReadCloser, error) {
			content, err := member.Open()
			if err != nil {
				return nil, source.failure("zip", err)
			}
			return source.decompress("zip", content)
		}})
	}
	if len(files) == 0 {
		return nil, loggerfiles.BadFormat("zip", "it has no file in the folder %q", folder)
	}
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}

// hidden reports whether a path is a folder, or a file that people do not see.
func hidden(name string) bool {
	return strings.HasSuffix(name, "/") || strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(name, "__MACOSX/")
}

// Open reads the file from its beginning, without its compression.
func (f File) Open() (io.ReadCloser, error) { return f.open() }

// source is an object whose errors are told from those of a compression.
type source struct {
	from   io.ReaderAt
	err    error // of the object
	budget int64 // what may still be read; 0 for any
}

var errBudget = errors.New("its list of files is too long")

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(into []byte, offset int64) (int, error) {
	if s.budget > 0 {
		if s.budget -= int64(len(into)); s.budget <= 0 {
			return 0, errBudget
		}
	}
	n, err := s.from.ReadAt(into, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// failure is an error of reading: the object's, or one of its format.
func (s *source) failure(format string, err error) error {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case s.err != nil:
		return s.err
	}
	return loggerfiles.BadFormat(cmp.Or(format, "compressed"), "%v", err)
}

// decompress reads a file, compressed or not. The format is that which it is in.
func (s *source) decompress(format string, from io.ReadCloser) (io.ReadCloser, error) {
	file := &content{source: s, format: format, closers: []func() error{from.Close}}
	buffered := bufio.NewReaderSize(from, readAhead)
	file.from = buffered
	begin, err := buffered.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, errors.Join(s.failure(format, err), from.Close())
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		file.format = "gzip"
		decoder, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, errors.Join(s.failure("gzip", err), from.Close())
		}
		file.from = decoder
	case bytes.Equal(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		file.format = "zstd"
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, errors.Join(s.failure("zstd", err), from.Close())
		}
		file.from = decoder
		file.closers = append(file.closers, func() error { decoder.Close(); return nil })
	}
	return file, nil
}

// content is a file without its compression.
type content struct {
	source  *source
	format  string
	from    io.Reader
	closers []func() error
}

// Read implements io.Reader.
func (c *content) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	return n, c.source.failure(c.format, err)
}

// Close implements io.Closer.
func (c *content) Close() error {
	var problems []error
	for _, closeOne := range slices.Backward(c.closers) {
		problems = append(problems, closeOne())
	}
	return errors.Join(problems...)
}
