package archive

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	root         = "raw/v1/"
	batchRoot    = root + "batches/"
	conflictRoot = root + "conflicts/"
	dataRoot     = root + "org="
	hourLayout   = "date=2006-01-02/hour=15"
	suffix       = ".ndjson.zst"
)

// Incarnation names an incarnation of a stream: RAW.20260304T120000Z, or
// RAW.20260304T120000Z.2 for the second generation of its archive.
type Incarnation string

// NewIncarnation is the incarnation of a stream that was made at a time. A generation above 0
// begins an archive anew for a stream whose numbers were given twice.
func NewIncarnation(stream string, created time.Time, generation int) Incarnation {
	incarnation := stream + "." + created.UTC().Format("20060102T150405Z")
	if generation > 0 {
		incarnation += "." + strconv.Itoa(generation)
	}
	return Incarnation(incarnation)
}

// generationOf is the generation of an incarnation of the stream that was made at a time;
// false if it is another's.
func (l Incarnation) generationOf(stream string, created time.Time) (int, bool) {
	first := NewIncarnation(stream, created, 0)
	if l == first {
		return 0, true
	}
	text, ok := strings.CutPrefix(string(l), string(first)+".")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// Partition is what the messages of an object have in common.
type Partition struct {
	Organization string
	Source       string
	// Hour is the beginning of the hour in which the stream took them, in UTC.
	Hour time.Time
}

// noName stands for the organization and source of a subject that has none.
const noName = "_"

// DataPrefix is what the keys of an organization's objects begin with, or those
// of one of its sources; without an organization, all objects with messages.
func DataPrefix(organization, source string) string {
	switch {
	case organization == "":
		return dataRoot
	case source == "":
		return dataRoot + organization + "/source="
	}
	return dataRoot + organization + "/source=" + source + "/"
}

func batchPrefix(incarnation Incarnation) string { return batchRoot + string(incarnation) + "/" }

func batchKey(incarnation Incarnation, first uint64) string {
	return fmt.Sprintf("%s%020d.json", batchPrefix(incarnation), first)
}

func dataKey(p Partition, incarnation Incarnation, first, last uint64) string {
	return fmt.Sprintf("%s%s/%s-%020d-%020d%s",
		DataPrefix(p.Organization, p.Source), p.Hour.UTC().Format(hourLayout), incarnation, first, last, suffix)
}

// conflictKey is where content goes whose key is taken by another.
func conflictKey(key, hash string) string {
	return conflictRoot + hash + "/" + strings.TrimPrefix(key, root)
}

var (
	batchPattern = regexp.MustCompile(`^raw/v1/batches/([A-Za-z0-9_-]+\.\d{8}T\d{6}Z(?:\.\d+)?)/(\d{20})\.json$`)
	dataPattern  = regexp.MustCompile(`^raw/v1/org=([^/]+)/source=([^/]+)/(date=\d{4}-\d\d-\d\d/hour=\d\d)/` +
		`([A-Za-z0-9_-]+\.\d{8}T\d{6}Z(?:\.\d+)?)-(\d{20})-(\d{20})\.ndjson\.zst$`)
)

// ConflictPrefix is what the keys begin with of content whose key was taken.
const ConflictPrefix = conflictRoot

// ConflictOf is the organization of content whose key was taken; false if the key is not
// of that form.
func ConflictOf(key string) (organization string, ok bool) {
	rest, found := strings.CutPrefix(key, conflictRoot)
	_, of, _ := strings.Cut(rest, "/")
	data, ok := ParseDataKey(root + of)
	return data.Organization, found && ok
}

// Data is what the key of an object with messages says.
type Data struct {
	Partition
	Incarnation Incarnation
	First, Last uint64 // of the batch
}

// ParseDataKey reads the key of an object with messages; false if it is none.
func ParseDataKey(key string) (Data, bool) {
	m := dataPattern.FindStringSubmatch(key)
	if m == nil {
		return Data{}, false
	}
	hour, err := time.Parse(hourLayout, m[3])
	first, firstErr := strconv.ParseUint(m[5], 10, 64)
	last, lastErr := strconv.ParseUint(m[6], 10, 64)
	if err != nil || firstErr != nil || lastErr != nil {
		return Data{}, false
	}
	return Data{Partition: Partition{m[1], m[2], hour}, Incarnation: Incarnation(m[4]), First: first, Last: last}, true
}

func parseBatchKey(key string) (Incarnation, uint64, bool) {
	m := batchPattern.FindStringSubmatch(key)
	if m == nil {
		return "", 0, false
	}
	first, err := strconv.ParseUint(m[2], 10, 64)
	return Incarnation(m[1]), first, err == nil
}
