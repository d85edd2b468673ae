package loggerfiles

import (
	"fmt"
	"io"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// encodings are those of text, by their names of IANA. UTF-8 needs none.
var encodings = map[string]encoding.Encoding{
	"windows-1252": charmap.Windows1252,
	"iso-8859-1":   charmap.ISO8859_1,
	"utf-16":       unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
}

// Decode makes UTF-8 of a text in an encoding: utf-8, windows-1252, iso-8859-1 or utf-16,
// whose order of bytes is little-endian unless a mark says otherwise.
func Decode(r io.Reader, name string) (io.Reader, error) {
	if name == "utf-8" {
		return r, nil
	}
	known, ok := encodings[name]
	if !ok {
		return nil, fmt.Errorf("the encoding %.40q is not one of utf-8, windows-1252, iso-8859-1, utf-16", name)
	}
	return known.NewDecoder().Reader(r), nil
}
