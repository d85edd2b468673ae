package imaging

import (
	"errors"
	"fmt"
	"image/jpeg"
	"image/png"
	"strings"
)

// InvalidError says that bytes are no picture of an accepted format, or a
// damaged one. The same bytes will never be a picture.
type InvalidError struct {
	reason string
	cause  error
}

// Error implements error.
func (e *InvalidError) Error() string { return e.reason }

// Unwrap gives the decoder's own error, if any.
func (e *InvalidError) Unwrap() error { return e.cause }

// LimitError says that a picture is larger than [Limits] allow. It is raised
// before anything is decoded.
type LimitError struct{ reason string }

// Error implements error.
func (e *LimitError) Error() string { return e.reason }

func invalidf(format string, args ...any) error {
	return &InvalidError{reason: fmt.Sprintf(format, args...)}
}

func limitf(format string, args ...any) error {
	return &LimitError{reason: fmt.Sprintf(format, args...)}
}

func damaged(format Format, cause error) error {
	var ofJPEG jpeg.UnsupportedError
	var ofPNG png.UnsupportedError
	if errors.As(cause, &ofJPEG) || errors.As(cause, &ofPNG) {
		return &InvalidError{reason: fmt.Sprintf("the %s file cannot be read: %v", format, cause), cause: cause}
	}
	why, _, _ := strings.Cut(cause.Error(), "\n") // WebAssembly tells where it was, line by line.
	return &InvalidError{reason: fmt.Sprintf("the %s file is damaged or cut short (%s)", format, why), cause: cause}
}

// NewInvalidError makes an error of what another process found.
func NewInvalidError(reason string) error { return &InvalidError{reason: reason} }

// NewLimitError makes an error of a limit that is not of this package.
func NewLimitError(format string, args ...any) error { return limitf(format, args...) }
