package release2

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/dendrascience/dendra-jobs/job"
)

// Classes of errors.
const (
	ClassToken       = "Release2Token"       // 401; final
	ClassRefused     = "Release2Refused"     // 400 and other 4xx: what was sent is not accepted; final
	ClassUnreachable = "Release2Unreachable" // no answer, or one of a server in trouble
)

// Errors that callers ask for.
var (
	// ErrNotFound means that there is no such document, or none of that version.
	ErrNotFound = errors.New("not found")
	// ErrExists means that there is a document with that id.
	ErrExists = errors.New("exists already")
)

// maxText bounds a message of the server, which may repeat all that it was sent.
const maxText = 1000

// refused makes the error of an answer that is no success.
func (c *Client) refused(what string, response *http.Response) error {
	status := response.StatusCode
	switch status {
	case http.StatusNotFound:
		return fmt.Errorf("release 2 at %s: %s: %w", c.address, what, ErrNotFound)
	case http.StatusConflict:
		return fmt.Errorf("release 2 at %s: %s: %w", c.address, what, ErrExists)
	}
	said := strings.ReplaceAll(errorText(response), c.config.Token, "***")
	text := fmt.Sprintf("%d %s: %s", status, http.StatusText(status), said)
	switch {
	case status == http.StatusUnauthorized:
		return job.Final(ClassToken, "release 2 at %s refuses the token: %s", c.address, text)
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return job.Retryable(ClassUnreachable, 0, "release 2 at %s: %s: %s", c.address, what, text)
	}
	return job.Final(ClassRefused, "release 2 at %s: %s: %s", c.address, what, text)
}

// errorText is the server's message with its details, on one line.
func errorText(response *http.Response) string {
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil && len(body) == 0 {
		return "no message"
	}
	var answer struct {
		Message string            `json:"message"`
		Errors  []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Message == "" {
		return "no message"
	}
	text := answer.Message
	for _, detail := range answer.Errors {
		var words string
		if json.Unmarshal(detail, &words) != nil {
			words = string(detail)
		}
		text += "; " + words
	}
	return job.Cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), maxText)
}
