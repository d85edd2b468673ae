package hobolinktest

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Failure is an answer other than data.
type Failure struct {
	// Status is the HTTP status; 509 is the vendor's "busy". Zero closes the
	// connection without an answer.
	Status int
	// Code is the vendor's error code. Defaults to the usual one of the status:
	// SYS-001 for 509 and other 5xx, SYS-002 for 429, ATH-001 for 401 and 403,
	// VAL-001 for 400.
	Code string
	// Message is the text of the error. Defaults to one about the code.
	Message string
	// RetryAfter is sent as the Retry-After header, in whole seconds, if positive.
	RetryAfter time.Duration
	// Body replaces the error body, if set: HTML of a proxy, a cut answer.
	Body string
}

// StatusBusy is the HTTP status the vendor answers with when its servers are busy.
const StatusBusy = 509

// FailNext makes the next n requests with a valid token and within the rate
// limit fail.
func (h *Handler) FailNext(n int, failure Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range n {
		h.failures = append(h.failures, failure)
	}
}

func (h *Handler) nextFailure() (Failure, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failures) == 0 {
		return Failure{}, false
	}
	failure := h.failures[0]
	h.failures = h.failures[1:]
	return failure, true
}

func (f Failure) write(w http.ResponseWriter) int {
	if f.Status == 0 {
		// The documented way to make net/http drop the connection.
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if f.Body != "" {
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
		return f.Status
	}
	code := f.Code
	if code == "" {
		code = usualCode(f.Status)
	}
	message := f.Message
	if message == "" {
		message = "the request failed with " + code
	}
	return writeError(w, f.Status, code, message)
}

func usualCode(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "SYS-002"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "ATH-001"
	case status >= http.StatusInternalServerError:
		return "SYS-001"
	}
	return "VAL-001"
}

// writeError sends an error body and returns its status.
func writeError(w http.ResponseWriter, status int, code, message string) int {
	body, _ := json.Marshal(map[string]string{"error": code, "message": message}) // strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
	return status
}

func plural(results int) string {
	if results == 1 {
		return "1 result"
	}
	return strconv.Itoa(results) + " results"
}
