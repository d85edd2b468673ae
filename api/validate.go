package api

import (
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// maxViolations bounds what an error says of a request. What comes after so many is not
// looked for.
const maxViolations = 20

// maxElements bounds the lists whose elements are complained of one by one.
const maxElements = 1000

// validator holds requests against the contract. It collects no more complaints than an
// error has.
type validator struct{}

// Validate implements protovalidate.Validator.
func (validator) Validate(m proto.Message, _ ...protovalidate.ValidationOption) error {
	first := protovalidate.Validate(m, protovalidate.WithFailFast())
	if first == nil {
		return nil
	}
	if all := protovalidate.Validate(m, protovalidate.WithFilter(&complaints{})); all != nil {
		return all
	}
	return first
}

// complaints is a filter that passes over long lists, over jobs that are valid, and over all
// jobs after so many that are not.
type complaints struct {
	jobs   int
	passed protoreflect.Message
}

// ShouldValidate implements protovalidate.Filter.
func (c *complaints) ShouldValidate(m protoreflect.Message, about protoreflect.Descriptor) bool {
	if field, ok := about.(protoreflect.FieldDescriptor); ok && field.IsList() && m.Get(field).List().Len() > maxElements {
		return false
	}
	declared, ok := m.Interface().(*jobsv1.Job)
	if !ok {
		return true
	}
	if about == m.Descriptor() {
		if c.jobs > maxViolations || protovalidate.Validate(declared, protovalidate.WithFailFast()) == nil {
			c.passed = m
		} else {
			c.jobs++
		}
	}
	return m != c.passed
}
