package influx

import (
	"fmt"
	"net/http"
	"slices"
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
	// KindName: the server has no retention policy of the name that the write gave, or
	// makes no database of that name. Writes to other targets are not at fault.
	KindName
	// KindConfig: credentials, permissions or the address are wrong, or the server says
	// what this package does not know. Someone has to mend it.
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
	case KindName:
		return "name"
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
	// Status is the HTTP status: 200 for a statement that failed, 0 when there was no
	// answer.
	Status int
	// Text is the server's message, or what happened to the connection.
	Text string
	// RetryAfter is the wait that the server asks for, or 0.
	RetryAfter time.Duration

	full string // the whole of Text
}

// Error writes "influx http://127.0.0.1:8086: 503 Service Unavailable: text".
func (e *Error) Error() string {
	text := "influx " + e.Address + ": "
	if e.Status >= http.StatusMultipleChoices {
		text += fmt.Sprintf("%d %s: ", e.Status, http.StatusText(e.Status))
	}
	return text + e.Text
}

// About is what of a request an answer is about.
type About int

// What an answer is about.
const (
	// AboutServer: another write would get the same answer.
	AboutServer About = iota + 1
	// AboutTarget: a write to another database or retention policy may get another one.
	AboutTarget
	// AboutPoints: a write of other points may get another one.
	AboutPoints
)

// About tells what the answer is about.
func (e *Error) About() About {
	switch {
	case e.Kind == KindLimits:
		return AboutServer
	case e.Kind == KindName, e.Kind == KindNoDatabase, e.Status == http.StatusOK, e.Status == http.StatusForbidden,
		strings.HasPrefix(reasonOf(e.Text), noPolicy):
		return AboutTarget
	case e.Status == http.StatusBadRequest, e.Status == http.StatusInternalServerError:
		return AboutPoints
	}
	return AboutServer
}

// noPolicy is how the server's reason begins that a retention policy is missing.
const noPolicy = "retention policy not found"

// reasonOf is the server's reason in its message.
func reasonOf(text string) string {
	return strings.TrimPrefix(strings.TrimPrefix(text, "partial write: "), "engine: ")
}

// kindOf tells the kinds apart by status and by the words of InfluxDB 1.6 to 1.8,
// whose statuses do not. Words count where the server's reason begins: the names
// and values of points that follow may hold any.
func kindOf(status int, text string) Kind {
	reason := reasonOf(text)
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(reason, w) })
	}
	switch {
	case is(limits...):
		return KindLimits // before all else: the server calls some of them a partial write
	case is("points beyond retention policy"):
		return KindTooOld
	case is("field type conflict"), status == http.StatusBadRequest && is(poison...):
		return KindPoison
	case is("database not found"):
		return KindNoDatabase
	case is(noPolicy):
		return KindName
	case is("database is required"):
		return KindConfig
	case status == http.StatusRequestEntityTooLarge:
		return KindTooBig
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return KindTransient
	case status == http.StatusBadRequest && reason != text:
		// A partial write for a reason that is not known to be about points, such as
		// "shard 7 is pending deletion": it may be another tomorrow.
		return KindTransient
	case strings.HasPrefix(reason, "shard "):
		return KindTransient
	}
	return KindConfig
}

// poison is how the server's reasons begin that are about single points.
var poison = []string{
	"unable to parse",
	"invalid tag key", "invalid field", "invalid measurement", "invalid boolean", "invalid number", "invalid unicode",
	"input field", "key contains invalid unicode", "max key length exceeded", "duplicate tags",
}

// limits are how the server's reasons begin when it is full. Those about series and
// tags come as a partial write with status 400, that about memory as an error of
// the engine with status 500.
var limits = []string{
	"max-series-per-database limit exceeded",
	"max-values-per-tag limit exceeded",
	"cache-max-memory-size exceeded",
}

// Unparsable finds the lines of a write that the server could not read: it names
// them in its answer as "unable to parse 'LINE': REASON". Sent holds the lines
// without their line breaks; the result has reasons by the same numbers. Of equal
// lines one is found, and lines that the server's other complaints hide, or that
// do not fit into its answer, are not.
func (e *Error) Unparsable(sent map[string]int) map[int]string {
	const before, after = "unable to parse '", "': "
	found := map[int]string{}
	for rest := e.full; ; {
		_, named, ok := strings.Cut(rest, before)
		if !ok {
			return found
		}
		rest = named
		// The line may hold what ends it here.
		for at := 0; ; {
			n := strings.Index(named[at:], after)
			if n < 0 {
				break
			}
			at += n
			if number, ok := sent[named[:at]]; ok {
				rest = named[at+len(after):]
				reason, _, _ := strings.Cut(rest, "\n")
				if n := strings.LastIndex(reason, " dropped="); n >= 0 {
					reason = reason[:n]
				}
				found[number] = before + named[:at] + after + reason
				break
			}
			at += len(after)
		}
	}
}
