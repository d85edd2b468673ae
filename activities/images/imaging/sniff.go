package imaging

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/svg"
)

// Format is a file format that is accepted.
type Format string

// The accepted formats.
const (
	JPEG Format = "JPEG"
	PNG  Format = "PNG"
	GIF  Format = "GIF"
	WebP Format = "WebP"
	HEIC Format = "HEIC"
	AVIF Format = "AVIF"
	// SVG is what the program passes on, sanitised, and makes pictures of.
	SVG Format = "SVG"
)

// Sniff tells the format from the first bytes of a file, never from its name.
// Anything but the accepted formats is an [InvalidError] that says what the
// bytes look like.
func Sniff(data []byte) (Format, error) {
	switch {
	case len(data) == 0:
		return "", invalidf("the file is empty (0 bytes)")
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return JPEG, nil
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return PNG, nil
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return GIF, nil
	case hasAt(data, 0, "RIFF") && hasAt(data, 8, "WEBP"):
		return WebP, nil
	case svg.Looks(data):
		return SVG, nil
	}
	if format, found := sniffHEIF(data); found {
		return format, nil
	}
	return "", invalidf("the file looks like %s, not like JPEG, PNG, GIF, WebP, HEIC, AVIF or SVG", looksLike(data))
}

// looksLike names what people upload by mistake.
func looksLike(data []byte) string {
	head := data[:min(len(data), 1024)]
	switch {
	case hasAt(head, 4, "ftyp"):
		return "a video or another ISO media file"
	case hasAt(head, 0, "II*\x00"), hasAt(head, 0, "MM\x00*"):
		return "TIFF or a camera's raw format"
	case hasAt(head, 0, "BM"):
		return "BMP"
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch kind {
	case "application/octet-stream":
		return "unknown binary data"
	case "text/plain":
		return "plain text"
	case "text/html":
		return "HTML"
	case "text/xml":
		return "XML"
	case "application/pdf":
		return "PDF"
	}
	return kind
}

func hasAt(data []byte, offset int, text string) bool {
	return len(data) >= offset+len(text) && string(data[offset:offset+len(text)]) == text
}
