package temporalclient

import (
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Metadata is what Temporal keeps beside the input of everything that belongs to a job carries.
type Metadata struct {
	SearchAttributes *commonpb.SearchAttributes
	Memo             *commonpb.Memo
	UserMetadata     *sdkpb.UserMetadata
}

// JobMetadata is the metadata of a job.
func JobMetadata(j job.Job) (Metadata, error) {
	attributes, err := contract.Attributes(j)
	if err != nil {
		return Metadata{}, err
	}
	encoded, err := EncodeAttributes(attributes)
	if err != nil {
		return Metadata{}, err
	}
	definition, err := EncodePayload(j)
	if err != nil {
		return Metadata{}, err
	}
	summary, err := EncodePayload(contract.Summary(j))
	if err != nil {
		return Metadata{}, err
	}
	return Metadata{
		SearchAttributes: encoded,
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoJob: definition}},
		UserMetadata:     &sdkpb.UserMetadata{Summary: summary},
	}, nil
}

// ScheduleMemo is the memo of the Schedule of a job itself, which lists carry; nil if the job
// has none of what it holds.
func ScheduleMemo(j job.Job) (*commonpb.Memo, error) {
	if j.Options.Freshness == 0 && j.Options.Deadline == nil {
		return nil, nil //nolint:nilnil // Documented.
	}
	hash, err := j.DefinitionHash()
	if err != nil {
		return nil, err
	}
	limits, err := EncodePayload(contract.Limits{Definition: hash, Freshness: j.Options.Freshness, Deadline: j.Options.Deadline})
	if err != nil {
		return nil, err
	}
	return &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoLimits: limits}}, nil
}

// EncodePayload writes a value as the SDK would.
func EncodePayload(value any) (*commonpb.Payload, error) {
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return payload, nil
}

// EncodeAttributes writes search attributes as the SDK would.
func EncodeAttributes(attributes temporal.SearchAttributes) (*commonpb.SearchAttributes, error) {
	fields := map[string]*commonpb.Payload{}
	for key, value := range attributes.GetUntypedValues() {
		payload, err := EncodePayload(value)
		if err != nil {
			return nil, err
		}
		payload.Metadata["type"] = []byte(key.GetValueType().String())
		fields[key.GetName()] = payload
	}
	return &commonpb.SearchAttributes{IndexedFields: fields}, nil
}

// DecodePayload reads a payload.
func DecodePayload(payload *commonpb.Payload, into any) error {
	return converter.GetDefaultDataConverter().FromPayload(payload, into)
}

// DecodeOnly reads the one payload of an input.
func DecodeOnly(payloads *commonpb.Payloads, into any) error {
	if len(payloads.GetPayloads()) != 1 {
		return errors.New("an event of an unknown form")
	}
	return DecodePayload(payloads.GetPayloads()[0], into)
}

// Attribute reads a keyword search attribute; "" when it is not set.
func Attribute(attributes *commonpb.SearchAttributes, name string) string {
	var value string
	if payload, ok := attributes.GetIndexedFields()[name]; !ok || DecodePayload(payload, &value) != nil {
		return ""
	}
	return value
}

// MemoField reads a field of a memo. It reports false when there is none that is readable.
func MemoField(memo *commonpb.Memo, name string, into any) bool {
	payload, ok := memo.GetFields()[name]
	return ok && DecodePayload(payload, into) == nil
}

// MemoDefinition reads the job that a memo carries.
func MemoDefinition(memo *commonpb.Memo) (job.Job, bool) {
	var j job.Job
	if !MemoField(memo, contract.MemoJob, &j) {
		return job.Job{}, false
	}
	return j, true
}

// SummaryOf reads the line that the Web UI shows for a workflow; "" for none.
func SummaryOf(metadata *sdkpb.UserMetadata) string {
	var summary string
	if metadata.GetSummary() == nil || DecodePayload(metadata.GetSummary(), &summary) != nil {
		return ""
	}
	return summary
}
