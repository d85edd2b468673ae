package readmodel_test

import (
	"cmp"
	"maps"
	"slices"
)

// merged is a list with what has changed in it, in the order of names.
func merged[M any](list, changed []M, removed []string, name func(M) string) []M {
	all := map[string]M{}
	for _, m := range list {
		all[name(m)] = m
	}
	for _, m := range changed {
		all[name(m)] = m
	}
	for _, gone := range removed {
		delete(all, gone)
	}
	if len(all) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(all), func(a, b M) int { return cmp.Compare(name(a), name(b)) })
}
