package pipeline

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
)

// Stage says which step could not go on with a message.
type Stage string

// The stages.
const (
	StageExtract Stage = "extract" // a vendor's record that is none
	StagePrepare Stage = "prepare" // a raw message, or a value in it, that makes no point
	StageLoad    Stage = "load"    // a prepared message or point that a database refuses
)

// Headers of a message in quarantine. Its body is what was refused, verbatim.
const (
	HeaderReason   = "Dendra-Reason"          // one line, in the words of who refused it
	HeaderClass    = "Dendra-Class"           // a short CamelCase name to filter by
	HeaderJob      = "Dendra-Job"             // id of the job that put it here
	HeaderTarget   = "Dendra-Target"          // server that refused it, if one did
	HeaderSubject  = "Dendra-Origin-Subject"  // where it came from, and where a replay would publish it
	HeaderSequence = "Dendra-Origin-Sequence" // its place in the stream it came from
	HeaderTime     = "Dendra-Quarantined-At"  // RFC 3339
)

// Quarantined is a message that could not be dealt with.
type Quarantined struct {
	Stage     Stage
	Operation Operation
	Name      string // the source or the location; must pass CheckToken
	Class     string
	Reason    string
	Job       string
	Target    string
	Subject   string
	Sequence  uint64
	Body      []byte
}

// maxReason bounds the reason, since headers count against the size of a message.
const maxReason = 1024

// Quarantine stores messages in the quarantine stream and returns when all are
// durable. The same body with the same class is kept once, however often it
// comes: it counts as a duplicate then. A body too large to be stored together
// with its headers is cut; the origin says where the whole of it is.
func (c *Client) Quarantine(ctx context.Context, messages []Quarantined) (Published, error) {
	if len(messages) == 0 {
		return Published{}, nil
	}
	if err := c.Ready(ctx); err != nil {
		return Published{}, err
	}
	outgoing := make([]Outgoing, len(messages))
	for i, q := range messages {
		outgoing[i] = q.outgoing(time.Now(), int(c.nc.MaxPayload()))
	}
	return c.Publish(ctx, outgoing)
}

func (q Quarantined) outgoing(now time.Time, maxPayload int) Outgoing {
	id := ID(string(q.Stage), string(q.Operation), q.Name, q.Class, string(q.Body))
	header := nats.Header{}
	set := func(key, value string) {
		if value != "" {
			header.Set(key, headerValue(value))
		}
	}
	set(HeaderReason, q.Reason)
	set(HeaderClass, q.Class)
	set(HeaderJob, q.Job)
	set(HeaderTarget, q.Target)
	set(HeaderSubject, q.Subject)
	set(HeaderTime, now.UTC().Format(time.RFC3339))
	if q.Sequence > 0 {
		set(HeaderSequence, strconv.FormatUint(q.Sequence, 10))
	}
	body := q.Body
	const headerRoom = 4 * maxReason
	if room := maxPayload - headerRoom; room > 0 && len(body) > room {
		body = body[:room]
	}
	return Outgoing{
		Subject: quarantineSubject(q.Stage, q.Operation, q.Name, id),
		Body:    body,
		Header:  header,
		once:    true,
	}
}

// headerValue makes one bounded line of a text: a line break would end the header.
func headerValue(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(line) > maxReason {
		line = strings.ToValidUTF8(line[:maxReason-len("…")], "") + "…"
	}
	return strings.TrimSpace(line)
}
