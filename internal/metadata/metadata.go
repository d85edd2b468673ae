// Package metadata writes and reads what Temporal keeps with the workflows and Schedules
// of jobs beside their input: search attributes, memos and summaries.
package metadata

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

// Metadata is what everything that belongs to a job carries.
type Metadata struct {
	SearchAttributes *commonpb.SearchAttributes
	Memo             *commonpb.Memo
	UserMetadata     *sdkpb.UserMetadata
}

// OfJob is the metadata of a job.
func OfJob(j job.Job) (Metadata, error) {
	attributes, err := contract.Attributes(j)
	if err != nil {
		return Metadata{}, err
	}
	encoded, err := EncodeAttributes(attributes)
	if err != nil {
		return Metadata{}, err
	}
	definition, err := Encode(j)
	if err != nil {
		return Metadata{}, err
	}
	summary, err := Encode(contract.Summary(j))
	if err != nil {
		return Metadata{}, err
	}
	return Metadata{
		SearchAttributes: encoded,
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoJob: definition}},
		UserMetadata:     &sdkpb.UserMetadata{Summary: summary},
	}, nil
}

// OfSchedule is the memo of the Schedule of a job itself, which lists carry; nil if the job
// has none of what it holds.
func OfSchedule(j job.Job) (*commonpb.Memo, error) {
	if j.Options.Freshness == 0 && j.Options.Deadline == nil {
		return nil, nil //nolint:nilnil // Documented.
	}
	hash, err := j.DefinitionHash()
	if err != nil {
		return nil, err
	}
	limits, err := Encode(contract.Limits{Definition: hash, Freshness: j.Options.Freshness, Deadline: j.Options.Deadline})
	if err != nil {
		return nil, err
	}
	return &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoLimits: limits}}, nil
}

// Encode writes a value as the SDK would.
func Encode(value any) (*commonpb.Payload, error) {
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
		payload, err := Encode(value)
		if err != nil {
			return nil, err
		}
		payload.Metadata["type"] = []byte(key.GetValueType().String())
		fields[key.GetName()] = payload
	}
	return &commonpb.SearchAttributes{IndexedFields: fields}, nil
}

// Decode reads a payload.
func Decode(payload *commonpb.Payload, into any) error {
	return converter.GetDefaultDataConverter().FromPayload(payload, into)
}

// DecodeOnly reads the one payload of an input.
func DecodeOnly(payloads *commonpb.Payloads, into any) error {
	if len(payloads.GetPayloads()) != 1 {
		return errors.New("an event of an unknown form")
	}
	return Decode(payloads.GetPayloads()[0], into)
}

// Attribute reads a keyword search attribute; "" when it is not set.
func Attribute(attributes *commonpb.SearchAttributes, name string) string {
	var value string
	if payload, ok := attributes.GetIndexedFields()[name]; !ok || Decode(payload, &value) != nil {
		return ""
	}
	return value
}

// Field reads a field of a memo. It reports false when there is none that is readable.
func Field(memo *commonpb.Memo, name string, into any) bool {
	payload, ok := memo.GetFields()[name]
	return ok && Decode(payload, into) == nil
}

// Definition reads the job that a memo carries.
func Definition(memo *commonpb.Memo) (job.Job, bool) {
	var j job.Job
	if !Field(memo, contract.MemoJob, &j) {
		return job.Job{}, false
	}
	return j, true
}

// Summary reads the line that the Web UI shows for a workflow; "" for none.
func Summary(metadata *sdkpb.UserMetadata) string {
	var summary string
	if metadata.GetSummary() == nil || Decode(metadata.GetSummary(), &summary) != nil {
		return ""
	}
	return summary
}
