package influx

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind says whose fault a failed write is, and so what to do about it.
type Kind int

// The kinds of failure.
const (
	// KindPoison: at least one point is one that the server refuses; the good
	// points of the write may be stored already. Halve the write to find it.
	KindPoison Kind = iota + 1
	// KindTooOld: as KindPoison, but points are older than what the database keeps.
	KindTooOld
	// KindTooBig: the body is larger than the server takes. Halve it.
	KindTooBig
	// KindNoDatabase: the database does not exist. Create it.
	KindNoDatabase
	// KindConfig: credentials, permissions, the retention policy or the address
	// are wrong. No point is at fault; someone has to mend it.
	KindConfig
	// KindLimits: the server is full: too many series, too many values of a tag, no
	// memory. No point is at fault, some may be stored already. Wait long.
	KindLimits
	// KindTransient: the server is not there or too busy. Wait; a write that was
	// cut off may have been stored, and writing it again is harmless.
	KindTransient
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case KindPoison:
		return "poison"
	case KindTooOld:
		return "too old"
	case KindTooBig:
		return "too big"
	case KindNoDatabase:
		return "no database"
	case KindConfig:
		return "config"
	case KindLimits:
		return "limits"
	case KindTransient:
		return "transient"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Error is a failed request.
type Error struct {
	Kind Kind
	// Address is the server's URL without credentials.
	Address string
	// Status is the HTTP status, or 0 when there was no answer.
	Status int
	// Text is the server's message, or what happened to the connection.
	Text string
	// RetryAfter is the wait that the server asks for, or 0.
	RetryAfter time.Duration
}

// Error writes "influx http://127.0.0.1:8086: 503 Service Unavailable: text".
func (e *Error) Error() string {
	text := "influx " + e.Address + ": "
	if e.Status != 0 {
		text += fmt.Sprintf("%d %s: ", e.Status, http.StatusText(e.Status))
	}
	return text + e.Text
}

// kindOf tells the kinds apart by status and by the words of InfluxDB 1.6 to 1.8,
// whose statuses do not.
func kindOf(status int, text string) Kind {
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case atLimit(text):
		return KindLimits // before all else: the server calls some of them a partial write
	case has("beyond retention policy"):
		return KindTooOld
	case has("field type conflict"), status == http.StatusBadRequest && (has("partial write") || has("unable to parse") || has("invalid")):
		return KindPoison
	case has("database not found"):
		return KindNoDatabase
	case has("retention policy not found"), has("database is required"):
		return KindConfig
	case status == http.StatusRequestEntityTooLarge:
		return KindTooBig
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return KindTransient
	}
	return KindConfig
}

// limits are how the server's reasons begin when it is full. Those about series and
// tags come as a partial write with status 400, that about memory as an error of
// the engine with status 500.
var limits = []string{
	"max-series-per-database limit exceeded",
	"max-values-per-tag limit exceeded",
	"cache-max-memory-size exceeded",
}

// atLimit tells whether the server is full. It looks at the beginning of the reason
// only: the names and values of points that follow it may hold any words.
func atLimit(text string) bool {
	reason := strings.TrimPrefix(strings.TrimPrefix(text, "partial write: "), "engine: ")
	for _, limit := range limits {
		if strings.HasPrefix(reason, limit) {
			return true
		}
	}
	return false
}
