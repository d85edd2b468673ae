package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Unknown is the sentence for a name that does not exist, with the known name
// that was probably meant, if one is close: unknown key "colour"; did you mean
// "color"?
func Unknown(what, name string, known []string) string {
	if closest, ok := Closest(name, known); ok {
		return fmt.Sprintf("unknown %s %s; did you mean %q?", what, quote(name), closest)
	}
	return fmt.Sprintf("unknown %s %s", what, quote(name))
}

// listedKeys bounds the keys that a message lists.
const listedKeys = 8

// unknownKey is Unknown for a key; where none is close and there are few, it lists those
// that are known.
func unknownKey(key string, known []string) string {
	text := Unknown("key", key, known)
	if _, ok := Closest(key, known); ok || len(known) == 0 || len(known) > listedKeys {
		return text
	}
	return text + "; the keys here are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Closest finds the candidate that is nearest to name: at most a third of its
// letters away (and one letter is always allowed), or the start of it, or what
// it starts.
func Closest(name string, candidates []string) (string, bool) {
	letters := []rune(name)
	const longest = 100
	if len(letters) > longest {
		return "", false
	}
	best, least := "", max(1, len(letters)/3)+1
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		other := []rune(candidate)
		if len(other) > longest || candidate == name {
			continue
		}
		distance := editDistance(letters, other)
		if shorter := min(len(letters), len(other)); shorter >= 3 && string(letters[:shorter]) == string(other[:shorter]) {
			distance = 1
		}
		if distance < min(least, len(other)) {
			best, least = candidate, distance
		}
	}
	return best, best != ""
}

// editDistance counts the letters to insert, delete, change or swap with their
// neighbour to get from a to b (optimal string alignment).
func editDistance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
