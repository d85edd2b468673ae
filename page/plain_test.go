package page_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// getPlain reads an address as a browser without scripts does.
func getPlain(t *testing.T, url string) []byte {
	t.Helper()
	body := get(t, url)
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body // It was too short to compress.
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	require.NoError(t, err)
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	return text
}
