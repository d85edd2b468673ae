package release2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// termsInfo is what the server writes about the terms of a datastream. Each term must be
// one of an enabled vocabulary, and only one of them a unit.
func termsInfo(ctx context.Context, db querier, terms map[string]any) (document, error) {
	keys, tags := []any{}, []any{}
	info := document{}
	for _, scheme := range slices.Sorted(maps.Keys(terms)) {
		labels, _ := terms[scheme].(map[string]any)
		key := []string{scheme}
		for _, vocabulary := range slices.Sorted(maps.Keys(labels)) {
			term, _ := labels[vocabulary].(string)
			kind, err := findTerm(ctx, db, scheme, vocabulary, term)
			if err != nil {
				return nil, err
			}
			switch {
			case kind == "class":
				tags = append(tags, fmt.Sprintf("%s_%s_%s", scheme, vocabulary, term))
				key = append(key, vocabulary+"_"+term)
			case info["unit_tag"] != nil:
				return nil, badRequest("You are not allowed to specify more than one unit term.")
			default:
				info["unit_tag"] = fmt.Sprintf("%s_%s_%s", scheme, vocabulary, term)
			}
		}
		if len(key) > 1 {
			keys = append(keys, strings.Join(key, "__"))
		}
	}
	info["class_keys"], info["class_tags"] = keys, tags
	return info, nil
}

// findTerm returns the type of the vocabulary that a term is of.
func findTerm(ctx context.Context, db querier, scheme, label, term string) (kind string, err error) {
	found, _, err := find(ctx, db, "vocabularies", query{limit: 1, conditions: []condition{
		{key: "is_enabled", values: []any{true}}, {key: "scheme_id", values: []any{scheme}}, {key: "label", values: []any{label}},
	}})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", badRequest("No vocabulary found for '%s.%s'.", scheme, label)
	}
	terms, _ := found[0]["terms"].([]any)
	for _, t := range terms {
		if described, ok := t.(map[string]any); ok && described["label"] == term {
			kind, _ = found[0]["vocabulary_type"].(string)
			return kind, nil
		}
	}
	return "", badRequest("No vocabulary term found for '%s.%s.%s'.", scheme, label, term)
}
