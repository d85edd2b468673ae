package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

const (
	// documentsFetch is how many messages are taken at a time, and documentsAtOnce
	// how many of them are written at the same time.
	documentsFetch  = 500
	documentsAtOnce = 8
)

// documents is the step that writes an object for each message of a fetch. A later
// message about the same thing overwrites an earlier one.
func (l *iteration) documents(ctx context.Context) (iterate.Next, error) {
	messages, rewound, err := l.consumer.FetchInOrder(ctx, documentsFetch, min(fetchWait, l.Left()), l.Stopping())
	if err != nil {
		return iterate.Done, err
	}
	l.Count("rewound", int64(rewound))
	if len(messages) == 0 && rewound == 0 {
		return iterate.More, l.askAgain(ctx)
	}
	if len(messages) == 0 {
		return iterate.More, nil
	}
	if err := l.writeDocuments(ctx, messages); err != nil {
		return iterate.Done, err
	}
	return iterate.More, l.consumer.Ack(ctx, messages)
}

func (l *iteration) writeDocuments(ctx context.Context, messages []*pipeline.Delivery) error {
	bodies := map[string][]byte{} // of several messages under a key, the last
	for _, message := range messages {
		if pipeline.IsReplay(message.Header) {
			l.Count("replays", 1)
			continue
		}
		l.Count("messages", 1)
		key, ok := DocumentKey(message.Stored)
		if !ok {
			l.Count("unnamed", 1)
		}
		bodies[key] = message.Body
	}
	group, working := job.NewGroup(ctx)
	group.SetLimit(documentsAtOnce)
	for key, body := range bodies {
		group.Go(func() error {
			if working.Err() != nil {
				return working.Err()
			}
			_, err := l.archive.Store.Put(working, objects.Object{
				Bucket: l.spec.Bucket, Key: l.spec.Prefix + key, Data: body, ContentType: "application/json",
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	l.Count("objects", int64(len(bodies)))
	return nil
}

var (
	datePattern = regexp.MustCompile(`^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)`)
	unsafeID    = regexp.MustCompile(`\W+`)
)

// DocumentKey is the path of a raw message among documents, all in lower case:
//
//	<organization>/csi/<station>/<table>/YYYY/MM/DD/HH/mm_<record number, 10 digits>.json
//	<organization>/hobolink/<station>/<table>/YYYY/MM/DD/HH/mm_<seconds>_<first sensor>.json
//
// The date is the source's own text: the logger's clock for csi, UTC for
// hobolink. What is no word character in a name becomes an underscore. It
// reports false for a message that has no such path; it gets one by its number:
// unnamed/<organization>/<source>/<time in ms>_<number>.json.
func DocumentKey(m pipeline.Stored) (string, bool) {
	_, organization, source, ok := pipeline.ParseRawSubject(m.Subject)
	var body struct {
		Context pipeline.Context `json:"context"`
		Payload struct {
			RecordNumber *int64 `json:"recordNumber"`
			Station      string `json:"station"`
			Table        string `json:"table"`
			TimeString   string `json:"timeString"`
			Timestamp    string `json:"timestamp"`
			Observations []struct {
				Sensor string `json:"sensor_sn"`
			} `json:"observations"`
		} `json:"payload"`
	}
	if !ok {
		organization, source = "_", "_"
	} else if json.Unmarshal(m.Body, &body) == nil {
		p := body.Payload
		station, table, at, last := p.Station, p.Table, p.TimeString, ""
		switch {
		case p.RecordNumber != nil:
			last = fmt.Sprintf("%010d", *p.RecordNumber)
		case len(p.Observations) > 0:
			station, table, at = body.Context.Station, body.Context.Table, p.Timestamp
			if len(at) >= len("2006-01-02 15:04:05") {
				last = at[17:19] + "_" + p.Observations[0].Sensor
			}
		}
		date := datePattern.FindStringSubmatch(at)
		if date != nil && station != "" && table != "" && last != "" {
			parts := append([]string{organization, source, station, table}, date[1:5]...)
			parts = append(parts, date[5]+"_"+last)
			for i, part := range parts {
				parts[i] = strings.ToLower(unsafeID.ReplaceAllString(part, "_"))
			}
			return strings.Join(parts, "/") + ".json", true
		}
	}
	return fmt.Sprintf("unnamed/%s/%s/%d_%d.json", organization, source, m.Time.UnixMilli(), m.Sequence), false
}
