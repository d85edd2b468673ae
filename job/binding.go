package job

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Failover says what becomes of a bound run whose service dies or goes away.
type Failover string

// The failover policies. Each acts once the service has been away for
// [Options.FailoverAfter].
const (
	FailoverRequeue Failover = "requeue" // the run goes on with another service that has the tags
	FailoverWait    Failover = "wait"    // the run stays until its service returns
	FailoverFail    Failover = "fail"    // the run fails with the class NoService
)

// FailoverPolicy is Failover or its default.
func (o Options) FailoverPolicy() Failover {
	if o.Failover == "" {
		return FailoverRequeue
	}
	return o.Failover
}

// FailoverWait is FailoverAfter or its default.
func (o Options) FailoverWait() Duration {
	if o.FailoverAfter == 0 {
		return Duration(30 * time.Second)
	}
	return o.FailoverAfter
}

// TagsText writes tags in the order of their names: gpu=2, zone=north.
func TagsText(tags map[string]string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		texts = append(texts, name+"="+tags[name])
	}
	return strings.Join(texts, ", ")
}

// Tags that every service has.
const (
	TagHost = "host" // the name of its machine
	TagName = "name" // its own name, unique within its worker type
)

// TagImages is a tag of backend workers: the libraries that make images there.
const TagImages = "images"

// Bounds of tags.
const (
	maxTags     = 32
	maxTagBytes = 128
)

// TagPattern is the regular expression that the name of a tag of a service matches.
const TagPattern = `^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$`

var tagPattern = regexp.MustCompile(TagPattern)

// CheckTag reports why a name and a value cannot be a tag of a service.
func CheckTag(name, value string) error {
	switch {
	case !tagPattern.MatchString(name):
		return fmt.Errorf("tag %.80q: a name has letters, digits, '.', '_', '-' and '/', starts with a letter or digit, "+
			"and has at most 64 characters", name)
	case value == "":
		return fmt.Errorf("tag %s has no value", name)
	case len(value) > maxTagBytes:
		return fmt.Errorf("tag %s: its value has %d bytes, more than %d", name, len(value), maxTagBytes)
	case !utf8.ValidString(value) || !isPrintable(value):
		return fmt.Errorf("tag %s: its value %.80q is not printable text", name, value)
	}
	return nil
}

func isPrintable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func (v *validator) binding(o Options) {
	if len(o.Bind) > maxTags {
		v.at([]string{"bind"}, "%d tags are more than %d", len(o.Bind), maxTags)
	}
	names := slices.Sorted(maps.Keys(o.Bind)) //workflowcheck:ignore // Sorted, so the same in every replay.
	for _, name := range names {
		if err := CheckTag(name, o.Bind[name]); err != nil {
			v.at([]string{"bind", name}, "%s", err)
		}
	}
}
