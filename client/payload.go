package client

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// encode writes a value as the SDK would.
func encode(value any) (*commonpb.Payload, error) {
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return payload, nil
}

// decode reads a payload that this system wrote.
func decode(payload *commonpb.Payload, into any) error {
	return converter.GetDefaultDataConverter().FromPayload(payload, into)
}

// marks are what everything that belongs to a job carries.
type marks struct {
	attributes *commonpb.SearchAttributes
	memo       *commonpb.Memo
	metadata   *sdkpb.UserMetadata
}

func marksOf(j job.Job) (marks, error) {
	attributes, err := contract.Attributes(j)
	if err != nil {
		return marks{}, err
	}
	encoded, err := encodeAttributes(attributes)
	if err != nil {
		return marks{}, err
	}
	definition, err := encode(j)
	if err != nil {
		return marks{}, err
	}
	summary, err := encode(contract.Summary(j))
	if err != nil {
		return marks{}, err
	}
	return marks{
		attributes: encoded,
		memo:       &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoJob: definition}},
		metadata:   &sdkpb.UserMetadata{Summary: summary},
	}, nil
}

func encodeAttributes(attributes temporal.SearchAttributes) (*commonpb.SearchAttributes, error) {
	fields := map[string]*commonpb.Payload{}
	for key, value := range attributes.GetUntypedValues() {
		payload, err := encode(value)
		if err != nil {
			return nil, err
		}
		payload.Metadata["type"] = []byte(key.GetValueType().String())
		fields[key.GetName()] = payload
	}
	return &commonpb.SearchAttributes{IndexedFields: fields}, nil
}

// SummaryText reads the line that the Web UI shows for a workflow; "" for none.
func SummaryText(metadata *sdkpb.UserMetadata) string {
	var summary string
	if metadata.GetSummary() == nil || decode(metadata.GetSummary(), &summary) != nil {
		return ""
	}
	return summary
}
