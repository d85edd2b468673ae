package hobolink

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dendrascience/dendra-jobs/internal/redact"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// refused makes the error of an answer other than 200.
func (c *Client) refused(frame Frame, response *http.Response) error {
	status := strconv.Itoa(response.StatusCode)
	if text := http.StatusText(response.StatusCode); text != "" {
		status += " " + text
	}
	said := c.errorText(response)
	after := retryAfter(response.Header)
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return job.Fail(errclass.HobolinkToken, "hobolink %s refuses the token: %s%s", c.address, status, said)
	case code == http.StatusTooManyRequests:
		return job.FailAfter(errclass.HobolinkRateLimit, after, "hobolink %s: %s: %s%s", c.address, frame, status, said)
	case code >= http.StatusInternalServerError || code == http.StatusRequestTimeout:
		return job.FailAfter(errclass.HobolinkBusy, after, "hobolink %s: %s: %s%s", c.address, frame, status, said)
	}
	return job.Fail(errclass.HobolinkRequest, "hobolink %s: %s: %s%s", c.address, frame, status, said)
}

// errorText reads the vendor's code and message: ", VAL-001: start_date_time is required".
func (c *Client) errorText(response *http.Response) string {
	text, err := io.ReadAll(response.Body)
	if err != nil && len(text) == 0 {
		return ""
	}
	var body struct {
		Error       string `json:"error"`
		Message     string `json:"message"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(text, &body) != nil {
		return "" // a proxy's page says nothing that the status does not
	}
	var said []string
	for _, part := range []string{body.Error, body.Message, body.Description} {
		if part != "" {
			said = append(said, part)
		}
	}
	if len(said) == 0 {
		return ""
	}
	// A server might repeat the token it was sent.
	return ", " + oneLine(redact.Of(c.config.Token).Text(strings.Join(said, ": ")))
}

func oneLine(text string) string {
	const limit = 300
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return job.Cut(text, limit)
}

func (c *Client) unreachable(frame Frame, err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // without the URL, which the frame tells better
	}
	return job.Fail(errclass.HobolinkUnreachable, "hobolink %s: %s: %w", c.address, frame, err)
}

// retryAfter is the wait that an answer asks for: Retry-After in seconds or as a
// date, else RateLimit-Reset if nothing remains; at most an hour.
func retryAfter(header http.Header) time.Duration {
	wait := time.Duration(0)
	if text := header.Get("Retry-After"); text != "" {
		if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
			wait = time.Duration(seconds) * time.Second
		} else if at, err := http.ParseTime(text); err == nil {
			wait = time.Until(at)
		}
	}
	if wait <= 0 && header.Get("RateLimit-Remaining") == "0" {
		if seconds, err := strconv.ParseUint(header.Get("RateLimit-Reset"), 10, 31); err == nil {
			wait = time.Duration(seconds) * time.Second
		}
	}
	return min(max(wait, 0), time.Hour)
}
