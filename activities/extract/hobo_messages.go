package extract

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// hoboSource names the vendor's interface in subjects and contexts.
const hoboSource = "hobolink"

// hoboTimestamp is the layout of a raw message's timestamp.
const hoboTimestamp = "2006-01-02 15:04:05Z"

// HoboReading is the payload of a raw message: consecutive observations of a
// logger that have the same timestamp.
type HoboReading struct {
	// Timestamp is in the vendor's form, yyyy-MM-dd HH:mm:ssZ, in UTC.
	Timestamp string `json:"timestamp"`
	// Observations are the items of the vendor's answer, verbatim.
	Observations []json.RawMessage `json:"observations"`
}

// hour is one hour of a logger's data, as messages.
type hour struct {
	start    time.Time
	messages []pipeline.Outgoing
	raw      int64
	prepared int64
	digest   hash.Hash64
}

// sum is a digest of what the messages of the hour say and where they go.
func (h *hour) sum() uint64 { return h.digest.Sum64() }

func (h *hour) add(message pipeline.Outgoing) {
	h.messages = append(h.messages, message)
	_, _ = h.digest.Write([]byte(message.ID))
}

// messages makes raw and prepared messages of observations, hour by hour, in
// their order.
func (l *loggerRun) messages(observations []hobolink.Observation) ([]*hour, error) {
	var hours []*hour
	byStart := map[int64]*hour{}
	for len(observations) > 0 {
		// The group ends where the timestamp changes: consecutive only, so that an
		// answer in another order loses nothing.
		n := 1
		for n < len(observations) && observations[n].Time.Equal(observations[0].Time) {
			n++
		}
		group := observations[:n]
		observations = observations[n:]

		start := group[0].Time.Truncate(time.Hour)
		h, found := byStart[start.Unix()]
		if !found {
			h = &hour{start: start, digest: fnv.New64a()}
			byStart[start.Unix()] = h
			hours = append(hours, h)
		}
		raw, err := l.rawMessage(group)
		if err != nil {
			return nil, err
		}
		h.add(raw)
		h.raw++
		prepared, ok, err := hoboMessage(l.context(), l.to, group)
		if err != nil {
			return nil, err
		}
		if ok {
			h.add(prepared)
			h.prepared++
		}
	}
	return hours, nil
}

func (l *loggerRun) rawMessage(group []hobolink.Observation) (pipeline.Outgoing, error) {
	message := pipeline.Message[HoboReading]{
		Context: l.context(),
		Payload: HoboReading{Timestamp: group[0].Time.Format(hoboTimestamp)},
	}
	parts := []string{l.rawSubject, l.logger.Station, l.logger.Table}
	for _, o := range group {
		message.Payload.Observations = append(message.Payload.Observations, o.Raw)
		parts = append(parts, string(o.Raw))
	}
	return outgoing(l.rawSubject, message, parts)
}

// hoboMessage makes the prepared message of observations that have the same
// timestamp. There is none if no observation has a value.
func hoboMessage(context pipeline.Context, to destination, group []hobolink.Observation) (out pipeline.Outgoing, ok bool, err error) {
	fields := map[string]any{}
	for _, o := range group {
		if o.Value != nil {
			fields[HoboField(o)] = *o.Value
		}
	}
	if len(fields) == 0 {
		return out, false, nil
	}
	out, err = to.message(context, group[0].Time, fields)
	return out, err == nil, err
}

// HoboField is the field that an observation's value is stored in:
// <measurement type>_<sensor>_<data type>_<unit> as a safe name.
func HoboField(o hobolink.Observation) string {
	return pipeline.SafeName(o.MeasurementType + "_" + o.Sensor + "_" + o.DataType + "_" + o.Unit)
}

func (l *loggerRun) context() pipeline.Context {
	return pipeline.Context{
		ImportedAt: l.now.UTC(),
		OrgSlug:    l.spec.Organization,
		Source:     hoboSource,
		Station:    l.logger.Station,
		Table:      l.logger.Table,
	}
}

// quarantined makes the message of an item of an answer that is not published.
func (l *loggerRun) quarantined(class, reason string, raw json.RawMessage) pipeline.Quarantined {
	return pipeline.Quarantined{
		Stage:     pipeline.StageExtract,
		Operation: l.spec.OperationMode,
		Name:      l.spec.Organization + "." + hoboSource,
		Class:     class,
		Reason:    "logger " + l.logger.Serial + ": " + reason,
		Job:       l.run.Job().ID,
		Target:    l.client.Address(),
		Subject:   l.rawSubject,
		Body:      raw,
	}
}

// published are the digests of the hours that were published after the bookmark,
// by the hour's start in Unix seconds: what a run that reads them again does not
// publish again. In a bookmark it is one string of 16 bytes per hour.
type published map[int64]uint64

// MarshalJSON writes the hours in no particular order, 16 bytes each.
func (p published) MarshalJSON() ([]byte, error) {
	packed := make([]byte, 0, 16*len(p))
	for start, digest := range p {
		packed = binary.BigEndian.AppendUint64(packed, uint64(start))
		packed = binary.BigEndian.AppendUint64(packed, digest)
	}
	return json.Marshal(packed)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *published) UnmarshalJSON(data []byte) error {
	var packed []byte
	if err := json.Unmarshal(data, &packed); err != nil {
		return err
	}
	if len(packed)%16 != 0 {
		return fmt.Errorf("%d bytes are not a list of hours", len(packed))
	}
	*p = published{}
	for ; len(packed) > 0; packed = packed[16:] {
		(*p)[int64(binary.BigEndian.Uint64(packed))] = binary.BigEndian.Uint64(packed[8:])
	}
	return nil
}
