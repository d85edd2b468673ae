package unpack_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/unpack"
)

const content = "t,v\n1,2\n"

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		file, err := w.Create(files[i])
		require.NoError(t, err)
		_, err = file.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// read lists the files of an object, and reads them all.
func read(object io.ReaderAt, size int64, folder string) (names, contents []string, err error) {
	files, err := unpack.Files(object, size, folder)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		r, err := file.Open()
		if err != nil {
			return nil, nil, err
		}
		text, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, nil, err
		}
		names, contents = append(names, file.Name), append(contents, string(text))
	}
	return names, contents, nil
}

func TestFiles(t *testing.T) {
	t.Parallel()
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed := zipped(t, "b/2.csv", content, "b/1.csv.gz", string(gzipped(t, content)), "a/x.csv", "x", "__MACOSX/b/1.csv", "x", "b/.hidden", "x", "b/c/", "")
	for name, c := range map[string]struct {
		object []byte
		folder string
		names  string
	}{
		"plain":               {[]byte(content), "", ""},
		"gzip":                {gzipped(t, content), "", ""},
		"gzip of two members": {append(gzipped(t, content[:4]), gzipped(t, content[4:])...), "", ""},
		"zstd":                {encoder.EncodeAll([]byte(content), nil), "", ""},
		"folder of a zip":     {packed, "/b/", "b/1.csv.gz b/2.csv"},
	} {
		names, contents, err := read(bytes.NewReader(c.object), int64(len(c.object)), c.folder)
		require.NoError(t, err, name)
		require.Equal(t, c.names, strings.Join(names, " "), name)
		for _, text := range contents {
			require.Equal(t, content, text, name)
		}
	}
	names, contents, err := read(bytes.NewReader(nil), 0, "")
	require.NoError(t, err)
	require.Equal(t, []string{""}, names)
	require.Equal(t, []string{""}, contents)
}

func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed, compressed, standard := zipped(t, "a.csv", strings.Repeat(content, 100)), gzipped(t, content), encoder.EncodeAll([]byte(content), nil)
	damaged := bytes.Clone(packed)
	damaged[50] ^= 0xff
	for _, object := range [][]byte{
		compressed[:len(compressed)-3], append(compressed[:len(compressed)-5:len(compressed)-5], "xxxxx"...), standard[:len(standard)-3],
		packed[:len(packed)-10], damaged, []byte("PK\x03\x04"), {0x1f, 0x8b, 0, 0},
	} {
		_, _, err := read(bytes.NewReader(object), int64(len(object)), "")
		require.ErrorAs(t, err, new(*loggerfiles.FormatError))
	}
	_, _, err = read(bytes.NewReader(packed), int64(len(packed)), "b")
	require.EqualError(t, err, `not a readable zip file: it has no file in the folder "b/"`)
}

// failing is an object that cannot be read from a byte on.
type failing struct {
	io.ReaderAt
	from int64
}

var errGone = errors.New("the store is gone")

func (f failing) ReadAt(into []byte, offset int64) (int, error) {
	if offset+int64(len(into)) > f.from {
		return 0, errGone
	}
	return f.ReaderAt.ReadAt(into, offset)
}

// TestErrorsOfTheObject are no errors of its format.
func TestErrorsOfTheObject(t *testing.T) {
	t.Parallel()
	for _, object := range [][]byte{[]byte(content), gzipped(t, content), zipped(t, "a.csv", content)} {
		for _, from := range []int64{0, 4} {
			_, _, err := read(failing{bytes.NewReader(object), from}, int64(len(object)), "")
			require.ErrorIs(t, err, errGone)
		}
	}
}
