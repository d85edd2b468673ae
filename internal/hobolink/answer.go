package hobolink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Observation is one measurement.
type Observation struct {
	Logger          string
	Sensor          string // 22413849-1
	Time            time.Time
	MeasurementType string // Temperature, RH, …
	DataType        string // CURRENT, MINIMUM, MAXIMUM, AVERAGE or STANDARD_DEVIATION
	Unit            string
	// OlderAPI says that it is of the vendor's older API: Value is the SI value.
	OlderAPI bool
	// Value is nil when the vendor has a reading without one.
	Value *float64
	// Raw is the item of the answer, verbatim.
	Raw json.RawMessage
}

// Rejected is an item of an answer that is no observation.
type Rejected struct {
	Raw    json.RawMessage // verbatim
	Reason string
}

// Answer is what the API says about a time frame.
type Answer struct {
	// Observations are in the order of the answer.
	Observations []Observation
	// Rejected are the items that could not be read.
	Rejected []Rejected
	// Bytes is the length of all items.
	Bytes int64
	// Truncated says that there is more than an answer may hold, by what the
	// vendor says or by the bounds of this package. The lists are empty then:
	// what is cut off is not worth keeping.
	Truncated bool
}

// Bounds of an answer. What is beyond them counts as truncated, since the remedy
// is the same: a shorter time frame.
const (
	// MaxBytes is what 100,000 observations of 335 bytes take; they have about 240.
	MaxBytes = 32 << 20
	// MaxItems is what the vendor puts into an answer at most.
	MaxItems = 100_000
	// MaxRejected bounds the items that are no observations.
	MaxRejected = 10_000
	// MaxItemBytes bounds an item, and every other part of an answer.
	MaxItemBytes = 4 << 20
)

// maxReason bounds a reason, which quotes the item.
const maxReason = 300

// timestampLayout is the form of a time in an answer. Nothing else is taken:
// a time that is guessed would put a value where it does not belong.
const timestampLayout = "2006-01-02 15:04:05Z"

// errAnswer marks a body that is no answer of the API, errBeyond one that is
// beyond the bounds.
var (
	errAnswer = errors.New("the answer is not one of the data API")
	errBeyond = errors.New("the answer is beyond its bounds")
)

// DecodeAnswer reads the body of a successful answer,
// {"message":…,"max_results":bool,"data":[…]}, item by item. An item that is no
// observation is kept among the rejected; a body that is no answer is an error.
func DecodeAnswer(body io.Reader) (Answer, error) {
	answer, err := decodeAnswer(body)
	if errors.Is(err, errBeyond) {
		return Answer{Truncated: true}, nil
	}
	return answer, err
}

func decodeAnswer(body io.Reader) (Answer, error) {
	var answer Answer
	parts := &partReader{reader: body}
	decoder := json.NewDecoder(parts)
	parts.taken = decoder.InputOffset
	if err := expectDelim(decoder, '{'); err != nil {
		return Answer{}, err
	}
	sawData := false
	names := intern{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return Answer{}, readError(err)
		}
		switch key {
		case "max_results":
			if err := decoder.Decode(&answer.Truncated); err != nil {
				return Answer{}, fieldError("max_results", err)
			}
			if answer.Truncated {
				return Answer{Truncated: true}, nil
			}
		case "data":
			sawData = true
			if err := decodeItems(decoder, &answer, names); err != nil {
				return Answer{}, err
			}
		default:
			var skipped json.RawMessage
			if err := decoder.Decode(&skipped); err != nil {
				return Answer{}, readError(err)
			}
		}
	}
	if err := expectDelim(decoder, '}'); err != nil {
		return Answer{}, err
	}
	if !sawData {
		return Answer{}, fmt.Errorf("%w: it has no data", errAnswer)
	}
	return answer, nil
}

func decodeItems(decoder *json.Decoder, answer *Answer, names intern) error {
	if err := expectDelim(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return readError(err)
		}
		answer.Bytes += int64(len(raw))
		if observation, err := parseItem(raw, names); err != nil {
			answer.Rejected = append(answer.Rejected, Rejected{Raw: raw, Reason: job.Cut(err.Error(), maxReason)})
		} else {
			answer.Observations = append(answer.Observations, observation)
		}
		if len(answer.Rejected) > MaxRejected || len(answer.Rejected)+len(answer.Observations) > MaxItems {
			return errBeyond
		}
	}
	return expectDelim(decoder, ']')
}

// partReader keeps a decoder from buffering a part without end: a decoder reads
// on only while it has no whole part.
type partReader struct {
	reader io.Reader
	read   int64        // bytes
	taken  func() int64 // how many of them the decoder has done with
}

func (r *partReader) Read(into []byte) (int, error) {
	if r.read-r.taken() > MaxItemBytes {
		return 0, errBeyond
	}
	n, err := r.reader.Read(into)
	r.read += int64(n)
	return n, err
}

// ParseObservation reads one item of an answer, as [DecodeAnswer] does, and keeps
// it as Raw. An error says what makes it no observation.
//
// It also reads an item of the vendor's older API, of which Release 2 kept messages: its
// value is si_value, and its data type is si, without a unit.
func ParseObservation(raw json.RawMessage) (Observation, error) {
	var old struct {
		DataType string          `json:"data_type"`
		SIValue  json.RawMessage `json:"si_value"`
	}
	if json.Unmarshal(raw, &old) != nil || old.DataType != "" || old.SIValue == nil {
		return parseItem(raw, intern{})
	}
	var item map[string]json.RawMessage
	if err := json.Unmarshal(raw, &item); err != nil {
		return Observation{}, fmt.Errorf("not an observation: %w", err)
	}
	item["data_type"], item["value"] = json.RawMessage(`"si"`), old.SIValue
	delete(item, "unit")
	changed, err := json.Marshal(item)
	if err != nil {
		return Observation{}, fmt.Errorf("not an observation: %w", err)
	}
	o, err := parseItem(changed, intern{})
	o.OlderAPI, o.Raw = true, raw
	return o, err
}

type item struct {
	Logger          string          `json:"logger_sn"`
	Sensor          string          `json:"sensor_sn"`
	Timestamp       string          `json:"timestamp"`
	DataType        string          `json:"data_type"`
	Value           json.RawMessage `json:"value"`
	Unit            string          `json:"unit"`
	MeasurementType string          `json:"sensor_measurement_type"`
}

func parseItem(raw json.RawMessage, names intern) (Observation, error) {
	var i item
	if err := json.Unmarshal(raw, &i); err != nil {
		return Observation{}, fmt.Errorf("not an observation: %w", err)
	}
	for _, required := range []struct{ name, value string }{
		{"logger_sn", i.Logger}, {"sensor_sn", i.Sensor}, {"timestamp", i.Timestamp},
		{"data_type", i.DataType}, {"sensor_measurement_type", i.MeasurementType},
	} {
		if required.value == "" {
			return Observation{}, fmt.Errorf("%s is missing or empty", required.name)
		}
	}
	at, err := time.Parse(timestampLayout, i.Timestamp)
	// time.Parse takes a fraction that the layout does not have.
	if err != nil || at.Format(timestampLayout) != i.Timestamp {
		return Observation{}, fmt.Errorf("timestamp %q is not of the form yyyy-MM-dd HH:mm:ssZ", i.Timestamp)
	}
	var value *float64
	if len(i.Value) > 0 && !bytes.Equal(i.Value, []byte("null")) {
		if err := json.Unmarshal(i.Value, &value); err != nil {
			return Observation{}, fmt.Errorf("value %s is not a number that a float64 can hold", i.Value)
		}
	}
	return Observation{
		Logger: names.of(i.Logger), Sensor: names.of(i.Sensor), Time: at.UTC(),
		MeasurementType: names.of(i.MeasurementType), DataType: names.of(i.DataType), Unit: names.of(i.Unit),
		Value: value, Raw: raw,
	}, nil
}

// intern keeps one copy of each name: an answer repeats few names very often.
type intern map[string]string

func (n intern) of(name string) string {
	if kept, found := n[name]; found {
		return kept
	}
	n[name] = name
	return name
}

func expectDelim(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return readError(err)
	}
	if token != want {
		return fmt.Errorf("%w: it has %v where %v belongs", errAnswer, token, want)
	}
	return nil
}

func fieldError(name string, err error) error {
	return fmt.Errorf("%w: %s: %w", errAnswer, name, err)
}

// readError tells a body that is cut or no JSON from one that could not be read.
func readError(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: %w", errAnswer, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it ends too early", errAnswer)
	}
	return err
}
