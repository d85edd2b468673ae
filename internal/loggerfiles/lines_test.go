package loggerfiles_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*loggerfiles.MaxLine+100)
	lines := loggerfiles.NewLines(strings.NewReader("\ufeffa\r\n\n  \n" + long + "\nb\xff\nc\nd"))
	for _, want := range []struct {
		text string
		at   loggerfiles.Position
		err  string
	}{
		{text: "a", at: loggerfiles.Position{Line: 1, Offset: 3}},
		{err: "line 4: the line has more than 262144 bytes"},
		{err: "line 5: the line is not UTF-8: the import has to name the file's encoding"},
		{text: "c", at: loggerfiles.Position{Line: 6, Offset: int64(10 + len(long) + 4)}},
		{err: "line 7: the last line has no line end: the file may be cut"},
		{err: io.EOF.Error()},
	} {
		line, at, err := lines.Next()
		if want.err != "" {
			require.EqualError(t, err, want.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want.text, string(line))
		require.Equal(t, want.at, at)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"utf-8": "°C", "windows-1252": "\xb0C", "iso-8859-1": "\xb0C", "utf-16": "\xff\xfe\xb0\x00C\x00",
	} {
		r, err := loggerfiles.Decode(strings.NewReader(text), name)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "°C", string(got), name)
	}
	_, err := loggerfiles.Decode(nil, "ebcdic")
	require.EqualError(t, err, `the encoding "ebcdic" is not one of utf-8, windows-1252, iso-8859-1, utf-16`)
}

func TestDecimalPoint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"1,5": "1.5", "-0,25e3": "-0.25e3", "1.5": "1.5", "1,2,3": "1,2,3", "a,b": "a,b", "1,234.5": "1,234.5"} {
		require.Equal(t, want, loggerfiles.DecimalPoint(text))
	}
}
