package extract

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// hoboSource names the vendor's interface in subjects and contexts.
const hoboSource = "hobolink"

// hoboTimestamp is the layout of a raw message's timestamp.
const hoboTimestamp = "2006-01-02 15:04:05Z"

// HoboSample is the payload of a raw message: consecutive observations of a
// logger that have the same timestamp.
type HoboSample struct {
	// Timestamp is in the vendor's form, yyyy-MM-dd HH:mm:ssZ, in UTC.
	Timestamp string `json:"timestamp"`
	// Observations are the items of the vendor's answer, verbatim.
	Observations []json.RawMessage `json:"observations"`
}

// sample is one timestamp of a logger, as messages. Their ids are of their content
// alone; see [hour.since].
type sample struct {
	raw      pipeline.Outgoing
	prepared *pipeline.Outgoing // nil without a value
	sum      uint64             // of the hour up to here
	group    []hobolink.Observation
}

// hour is one hour of a logger's data.
type hour struct {
	start   time.Time
	samples []sample
	digest  hash.Hash64
}

// sum is a digest of what the messages of the hour say and where they go.
func (h *hour) sum() uint64 { return h.digest.Sum64() }

func (h *hour) add(r sample) {
	_, _ = h.digest.Write([]byte(r.raw.ID))
	if r.prepared != nil {
		_, _ = h.digest.Write([]byte(r.prepared.ID))
	}
	r.sum = h.sum()
	h.samples = append(h.samples, r)
}

// since gives the samples that are to be published after a revision of the hour,
// and the revision that they make. An hour that has grown at its end needs only
// what is new. One that has changed is published as a whole, with other ids than
// before: a value that comes back is no repeat of when it was there first.
func (h *hour) since(last revision) ([]sample, revision) {
	next := revision{digest: h.sum(), changes: last.changes}
	for i, r := range h.samples {
		if r.sum == last.digest {
			return h.samples[i+1:], next
		}
	}
	if last.digest != 0 {
		next.changes++
	}
	return h.samples, next
}

// outgoing are the messages of a sample in a revision of its hour.
func (r sample) outgoing(changes uint32) []pipeline.Outgoing {
	raw := r.raw
	if changes > 0 {
		raw.ID = pipeline.ID(raw.ID, strconv.FormatUint(uint64(changes), 10))
	}
	if r.prepared == nil {
		return []pipeline.Outgoing{raw}
	}
	return []pipeline.Outgoing{raw, preparedOf(*r.prepared, raw.ID)}
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
		r := sample{raw: raw, group: group}
		prepared, ok, err := hoboMessage(l.context(), l.to, group)
		if err != nil {
			return nil, err
		}
		if ok {
			r.prepared = &prepared
		}
		h.add(r)
	}
	return hours, nil
}

func (l *loggerRun) rawMessage(group []hobolink.Observation) (pipeline.Outgoing, error) {
	sample := HoboSample{Timestamp: group[0].Time.Format(hoboTimestamp)}
	parts := []string{l.rawSubject, l.logger.Station, l.logger.Table}
	for _, o := range group {
		sample.Observations = append(sample.Observations, o.Raw)
		parts = append(parts, string(o.Raw))
	}
	payload, err := pipeline.Marshal(sample)
	if err != nil {
		return pipeline.Outgoing{}, fmt.Errorf("encode a sample of station %s, table %s: %w", l.logger.Station, l.logger.Table, err)
	}
	return outgoing(l.rawSubject, l.context(), payload, parts...)
}

// hoboMessage makes the prepared message of observations that have the same
// timestamp. There is none if no observation has a value.
func hoboMessage(context pipeline.Context, to Destination, group []hobolink.Observation) (out pipeline.Outgoing, ok bool, err error) {
	fields := map[string]any{}
	for _, o := range group {
		if o.Value != nil {
			fields[HoboField(o)] = *o.Value
		}
	}
	if len(fields) == 0 {
		return out, false, nil
	}
	out, err = Point{Destination: to, Time: group[0].Time, Fields: fields}.message(context)
	return out, err == nil, err
}

// HoboField is the field that an observation's value is stored in:
// <measurement type>_<sensor>_<data type>_<unit> as a safe name. That of an observation
// of the vendor's older API has no unit, as in Release 2.
func HoboField(o hobolink.Observation) string {
	if o.OlderAPI {
		return pipeline.SafeName(o.MeasurementType + "_" + o.Sensor + "_" + o.DataType)
	}
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

// tooLarge are the observations of a sample of which a message is larger than the
// server takes. What of the reading fits is published.
func (l *loggerRun) tooLarge(r sample, err error) []pipeline.Quarantined {
	refused := make([]pipeline.Quarantined, len(r.group))
	for i, o := range r.group {
		refused[i] = l.quarantined(errclass.MessageTooLarge, err.Error(), o.Raw)
	}
	return refused
}

// revision is what of an hour was published last.
type revision struct {
	digest  uint64 // 0: one that is being published
	changes uint32 // how often the hour was published otherwise before
}

// published are the revisions of the hours that were published after the bookmark,
// by the hour's start in Unix seconds: what a run that reads them again does not
// publish again. In a bookmark it is one string of 16 bytes per hour: changes,
// start (4 bytes each) and digest.
type published map[int64]revision

// MarshalJSON writes the hours in no particular order, 16 bytes each.
func (p published) MarshalJSON() ([]byte, error) {
	packed := make([]byte, 0, 16*len(p))
	for start, e := range p {
		if start < 0 || start > math.MaxUint32 {
			continue // published again whenever it is read
		}
		packed = binary.BigEndian.AppendUint32(packed, e.changes)
		packed = binary.BigEndian.AppendUint32(packed, uint32(start))
		packed = binary.BigEndian.AppendUint64(packed, e.digest)
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
		(*p)[int64(binary.BigEndian.Uint32(packed[4:]))] = revision{
			changes: binary.BigEndian.Uint32(packed), digest: binary.BigEndian.Uint64(packed[8:]),
		}
	}
	return nil
}
