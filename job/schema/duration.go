package schema

import (
	"fmt"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/dendrascience/dendra-jobs/job"
)

// durationBounds checks formatMinimum and formatMaximum, which JSON Schema itself
// does not have: its minimum and maximum are for numbers.
func durationBounds() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL: "https://dendra.science/jobs/duration-bounds",
		Compile: func(_ *jsonschema.CompilerContext, schema map[string]any) (jsonschema.SchemaExt, error) {
			if schema["format"] != FormatDuration {
				return nil, nil //nolint:nilnil // It says that there is nothing to check.
			}
			var r durationRange
			var err error
			if r.least, err = durationBound(schema, "formatMinimum"); err != nil {
				return nil, err
			}
			r.most, err = durationBound(schema, "formatMaximum")
			return r, err
		},
	}
}

func durationBound(schema map[string]any, keyword string) (*job.Duration, error) {
	text, ok := schema[keyword].(string)
	if !ok {
		return nil, nil //nolint:nilnil // There is no bound.
	}
	bound, err := job.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyword, err)
	}
	return &bound, nil
}

// durationRange is what a duration may be; nil is no bound.
type durationRange struct{ least, most *job.Duration }

// Validate implements jsonschema.SchemaExt.
func (r durationRange) Validate(ctx *jsonschema.ValidatorContext, value any) {
	given, err := parseDuration(value)
	if err != nil {
		return // The format says so.
	}
	rat := func(d job.Duration) *big.Rat { return new(big.Rat).SetInt64(int64(d)) }
	if r.least != nil && given < *r.least {
		ctx.AddError(&kind.Minimum{Got: rat(given), Want: rat(*r.least)})
	}
	if r.most != nil && given > *r.most {
		ctx.AddError(&kind.Maximum{Got: rat(given), Want: rat(*r.most)})
	}
}

func checkDuration(value any) error {
	_, err := parseDuration(value)
	return err
}

func parseDuration(value any) (job.Duration, error) {
	switch value := value.(type) {
	case string:
		return job.ParseDuration(value)
	case float64:
		return job.DurationOfSeconds(value)
	case int64:
		return job.DurationOfSeconds(float64(value))
	}
	return 0, nil // Of a wrong type, which another rule says.
}
