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
	// KindLimits: the server is full: too many series, no memory. Wait long.
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
	case has("beyond retention policy"):
		return KindTooOld
	case has("field type conflict"), status == http.StatusBadRequest && (has("partial write") || has("unable to parse") || has("invalid")):
		return KindPoison
	case has("database not found"):
		return KindNoDatabase
	case has("retention policy not found"), has("database is required"):
		return KindConfig
	case has("max-series-per-database"), has("max series"), has("cache-max-memory-size"), has("cache maximum memory"):
		return KindLimits
	case status == http.StatusRequestEntityTooLarge:
		return KindTooBig
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return KindTransient
	}
	return KindConfig
}
