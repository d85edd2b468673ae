package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Stage says which step could not go on with a message.
type Stage string

// The stages.
const (
	StageExtract Stage = "extract" // a vendor's record that is none
	StagePrepare Stage = "prepare" // a raw message, or a value in it, that makes no point
	StageLoad    Stage = "load"    // a prepared message or point that a database refuses
	StageChange  Stage = "change"  // a change of the platform that a subscriber cannot handle
)

// Stages lists them all.
func Stages() []Stage { return []Stage{StageExtract, StagePrepare, StageLoad, StageChange} }

// Check reports a stage that there is not.
func (s Stage) Check() error {
	if slices.Contains(Stages(), s) {
		return nil
	}
	return fmt.Errorf("stage %q is not one of extract, prepare, load, change", string(s))
}

// Headers of a message in quarantine. Its body is what was refused, verbatim.
const (
	HeaderReason   = "Dendra-Reason"          // one line, in the words of who refused it
	HeaderClass    = "Dendra-Class"           // a short CamelCase name to filter by
	HeaderJob      = "Dendra-Job"             // id of the job that put it here
	HeaderTarget   = "Dendra-Target"          // server that refused it, if one did
	HeaderSubject  = "Dendra-Origin-Subject"  // where it came from, and where a replay would publish it
	HeaderSequence = "Dendra-Origin-Sequence" // its place in the stream it came from
	HeaderTime     = "Dendra-Quarantined-At"  // RFC 3339
	HeaderSize     = "Dendra-Body-Size"       // bytes of what was refused, where the body is cut
)

// Quarantined is a message that could not be dealt with.
type Quarantined struct {
	Stage     Stage
	Operation Operation
	Name      string // <organization>.<source>, the location, or <organization id>.<kind>; its parts must pass CheckToken
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
// comes, and whenever it was imported: it counts as a duplicate then. If it comes from another place in its
// stream than what is kept, it was published again, and takes the older one's
// place. A body too large to be stored together with its headers is cut; the
// origin says where the whole of it is.
func (c *Client) Quarantine(ctx context.Context, messages []Quarantined) (Published, error) {
	var published Published
	if len(messages) == 0 {
		return published, nil
	}
	if err := c.Ready(ctx); err != nil {
		return published, err
	}
	for some := range slices.Chunk(messages, publishWindow) {
		waiting := make([]jetstream.PubAckFuture, len(some))
		outgoing := make([]Outgoing, len(some))
		for i, q := range some {
			var err error
			outgoing[i] = q.outgoing(time.Now(), int(c.nc.MaxPayload()))
			if waiting[i], err = c.send(ctx, outgoing[i]); err != nil {
				return published, c.failed(ctx, "publish to "+outgoing[i].Subject, err)
			}
		}
		for i, future := range waiting {
			ack, err := c.confirm(ctx, future)
			if err != nil {
				return published, err
			}
			if ack.Duplicate && some[i].Sequence > 0 {
				renewed, err := c.renew(ctx, outgoing[i])
				if err != nil {
					return published, err
				}
				ack.Duplicate = !renewed
			}
			published.Count(ack)
			if !ack.Duplicate {
				metrics.Quarantined.Inc(string(some[i].Stage), some[i].Class)
			}
		}
	}
	return published, nil
}

// renewAttempts bounds how often an item that changes under renew is looked at again.
const renewAttempts = 20

// renew puts a message in the place of the one with the same content that is in
// quarantine, if that came from another place in the origin's stream; it reports
// whether it did. Someone who replays that one removes it when its copy is in the
// stream again, and must not remove with it what became of the copy.
func (c *Client) renew(ctx context.Context, message Outgoing) (bool, error) {
	what := "quarantine on " + message.Subject
	stream, err := c.js.Stream(ctx, StreamQuarantine)
	if err != nil {
		return false, c.failed(ctx, what, err)
	}
	for range renewAttempts {
		var expected uint64
		kept, err := stream.GetLastMsgForSubject(ctx, message.Subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound): // removed meanwhile
		case err != nil:
			return false, c.failed(ctx, what, err)
		case kept.Header.Get(HeaderSequence) == message.Header.Get(HeaderSequence):
			return false, nil
		default:
			expected = kept.Sequence
		}
		_, err = c.js.PublishMsg(ctx, &nats.Msg{Subject: message.Subject, Header: maps.Clone(message.Header), Data: message.Body},
			jetstream.WithExpectLastSequencePerSubject(expected))
		if isStale(err) {
			continue
		}
		if err != nil {
			return false, c.failed(ctx, what, err)
		}
		if expected == 0 {
			return true, nil
		}
		_, err = c.remove(ctx, stream, expected)
		return true, err
	}
	return false, job.Fail(errclass.PipelineUnreachable, "%s: %s: the item changed %d times meanwhile", c.address, what, renewAttempts)
}

func (q Quarantined) outgoing(now time.Time, maxPayload int) Outgoing {
	id := ID(string(q.Stage), string(q.Operation), q.Name, q.Class, string(timeless(q.Body)))
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
		set(HeaderSize, strconv.Itoa(len(body)))
		body = body[:room]
	}
	return Outgoing{
		Subject: quarantineSubject(q.Stage, q.Operation, q.Name, id),
		Body:    body,
		Header:  header,
		once:    true,
	}
}

// timeless is a body without what its context says of when it was imported and
// replayed: that differs in what is read twice. Other bodies stay as they are.
func timeless(body []byte) []byte {
	var envelope struct {
		Context struct {
			ImportedAt json.RawMessage `json:"imported_at"`
			ReplayedAt json.RawMessage `json:"replayed_at"`
		} `json:"context"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return body
	}
	for key, value := range map[string]json.RawMessage{
		`"imported_at":`: envelope.Context.ImportedAt, `"replayed_at":`: envelope.Context.ReplayedAt,
	} {
		if len(value) > 0 {
			body = bytes.Replace(body, slices.Concat([]byte(key), value), nil, 1)
		}
	}
	return body
}

// headerValue makes one bounded line of a text: a line break would end the header.
func headerValue(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(job.Cut(line, maxReason))
}
