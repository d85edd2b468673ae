package release2

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/dendrascience/dendra-jobs/internal/redact"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Errors that callers ask for.
var (
	// ErrNotFound means that Release 2 says that it has no such document, or none of that
	// version. Another 404 is [errclass.Release2Unreachable]: it may be of a proxy or a wrong URL.
	ErrNotFound = errors.New("not found")
	// ErrExists means that there is a document with that id.
	ErrExists = errors.New("exists already")
)

// maxText bounds a message of the server, which may repeat all that it was sent.
const maxText = 1000

// refused makes the error of an answer that is no success. one says that the request
// was about one document that is there.
func (c *Client) refused(what string, one bool, response *http.Response) error {
	status := response.StatusCode
	said := readError(response)
	text := fmt.Sprintf("%d %s: %s", status, http.StatusText(status), said.text(c.config.Token))
	switch {
	case status == http.StatusNotFound && one && said.Name == "NotFound":
		return fmt.Errorf("release 2 at %s: %s: %w", c.address, what, ErrNotFound)
	case status == http.StatusNotFound:
		return job.Fail(errclass.Release2Unreachable, "release 2 at %s: %s: %s; check %s", c.address, what, text, EnvURL)
	case status == http.StatusConflict:
		return fmt.Errorf("release 2 at %s: %s: %w", c.address, what, ErrExists)
	case status == http.StatusUnauthorized:
		return job.Fail(errclass.Release2Token, "release 2 at %s refuses the token: %s", c.address, text)
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return job.Fail(errclass.Release2Unreachable, "release 2 at %s: %s: %s", c.address, what, text)
	}
	return job.Fail(errclass.Release2Refused, "release 2 at %s: %s: %s", c.address, what, text)
}

// said is what the server says of an error.
type said struct {
	Name    string          `json:"name"`
	Message string          `json:"message"`
	Errors  json.RawMessage `json:"errors"` // a list, or an object by field
}

// readError reads the error that an answer holds: none if it is not one of the server.
func readError(response *http.Response) said {
	var s said
	body, err := io.ReadAll(response.Body)
	if err != nil && len(body) == 0 || json.Unmarshal(body, &s) != nil {
		return said{}
	}
	return s
}

// text is the message with its details, on one line and without the token.
func (s said) text(token string) string {
	if s.Message == "" {
		return "no message"
	}
	text := s.Message
	var details []json.RawMessage
	if json.Unmarshal(s.Errors, &details) != nil && len(s.Errors) > len("{}") {
		details = []json.RawMessage{s.Errors}
	}
	for _, detail := range details {
		var words string
		if json.Unmarshal(detail, &words) != nil {
			words = string(detail)
		}
		text += "; " + words
	}
	text = redact.Of(token).Text(text)
	return job.Cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), maxText)
}
