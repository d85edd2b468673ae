package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// AppendLine appends a message as a line of JSON:
//
//	{"seq":7,"time":"2026-03-04T12:00:00.123456789Z","subject":"dendra.raw.v1.live.ucnrs.csi","headers":{"Nats-Msg-Id":["…"]},"body":{"context":{…},"payload":{…}}}
//
// The body stands there verbatim if it is JSON on one line, and else as
// body_base64. The time is when the stream took the message.
func AppendLine(dst []byte, m pipeline.Stored) ([]byte, error) {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, m.Sequence, 10)
	dst = append(dst, `,"time":"`...)
	dst = m.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	subject, err := json.Marshal(m.Subject)
	if err != nil {
		return nil, fmt.Errorf("message %d: its subject: %w", m.Sequence, err)
	}
	dst = append(append(dst, `","subject":`...), subject...)
	if len(m.Header) > 0 {
		header, err := json.Marshal(m.Header) // its keys are sorted
		if err != nil {
			return nil, fmt.Errorf("message %d: its headers: %w", m.Sequence, err)
		}
		dst = append(append(dst, `,"headers":`...), header...)
	}
	if verbatim(m.Body) {
		dst = append(append(dst, `,"body":`...), m.Body...)
	} else {
		body, err := json.Marshal(m.Body) // base64
		if err != nil {
			return nil, fmt.Errorf("message %d: its body: %w", m.Sequence, err)
		}
		if m.Body == nil {
			body = []byte(`""`)
		}
		dst = append(append(dst, `,"body_base64":`...), body...)
	}
	return append(dst, '}', '\n'), nil
}

// verbatim reports whether a body can stand in a line of JSON as it is.
func verbatim(body []byte) bool {
	if len(body) == 0 || bytes.ContainsAny(body, "\r\n") || !utf8.Valid(body) {
		return false
	}
	space := func(c byte) bool { return c == ' ' || c == '\t' }
	return !space(body[0]) && !space(body[len(body)-1]) && json.Valid(body)
}

// ParseLine reads what [AppendLine] writes, with or without the line break.
func ParseLine(line []byte) (pipeline.Stored, error) {
	var stored struct {
		Sequence uint64              `json:"seq"`
		Time     time.Time           `json:"time"`
		Subject  string              `json:"subject"`
		Headers  map[string][]string `json:"headers"`
		Body     json.RawMessage     `json:"body"`
		Base64   *[]byte             `json:"body_base64"`
	}
	if err := json.Unmarshal(line, &stored); err != nil {
		return pipeline.Stored{}, fmt.Errorf("not a line of the archive: %w", err)
	}
	m := pipeline.Stored{Sequence: stored.Sequence, Time: stored.Time.UTC(), Subject: stored.Subject, Header: stored.Headers, Body: stored.Body}
	if stored.Base64 != nil {
		m.Body = *stored.Base64
	}
	if m.Sequence == 0 || m.Subject == "" || m.Body == nil {
		return pipeline.Stored{}, errors.New("not a line of the archive: seq, subject or body is missing")
	}
	return m, nil
}

// partitionOf says which object a message belongs to.
func partitionOf(m pipeline.Stored) Partition {
	_, organization, source, ok := pipeline.ParseRawSubject(m.Subject)
	if !ok {
		organization, source = noName, noName
	}
	return Partition{organization, source, m.Time.UTC().Truncate(time.Hour)}
}
