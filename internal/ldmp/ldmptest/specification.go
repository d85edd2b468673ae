package ldmptest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
)

// group is a table that a client asks for.
type group struct {
	station, table string
	order          ldmp.Order
	start          startOption
}

type startOption struct {
	kind  string
	clock time.Time
	back  time.Duration
}

var (
	groupPattern    = regexp.MustCompile(`^\{(\S+) (\S+) --order-option=(\S+) --start-option=(.+?)\} `)
	atTimePattern   = regexp.MustCompile(`^\{at-time \{(.+)\}\}$`)
	relativePattern = regexp.MustCompile(`^\{relative-to-newest (\d+)\}$`)
)

// parseSpec reads the specification of a client, without its carriage return.
func parseSpec(text string) ([]group, error) {
	rest, ok := strings.CutPrefix(text, "--output-format=xml ")
	if !ok {
		return nil, fmt.Errorf("it does not ask for XML: %.60q", text)
	}
	var groups []group
	for rest != ";" {
		end := strings.Index(rest, "} ")
		if end < 0 {
			return nil, fmt.Errorf("a table does not end: %.60q", rest)
		}
		match := groupPattern.FindStringSubmatch(rest[:end+2])
		if match == nil {
			return nil, fmt.Errorf("this is no table: %.60q", rest[:end+2])
		}
		start, err := parseStart(match[4])
		if err != nil {
			return nil, err
		}
		groups = append(groups, group{station: match[1], table: match[2], order: ldmp.Order(match[3]), start: start})
		rest = rest[end+2:]
	}
	if len(groups) == 0 {
		return nil, errors.New("it asks for no table")
	}
	return groups, nil
}

func parseStart(text string) (startOption, error) {
	if text == ldmp.StartAtOldest || text == ldmp.StartAtNewest {
		return startOption{kind: text}, nil
	}
	if match := atTimePattern.FindStringSubmatch(text); match != nil {
		clock, err := time.Parse("2006 01 02 15:04:05.00", match[1])
		return startOption{kind: ldmp.StartAtTime, clock: clock}, err
	}
	if match := relativePattern.FindStringSubmatch(text); match != nil {
		seconds, err := strconv.ParseInt(match[1], 10, 32)
		return startOption{kind: ldmp.StartRelativeToNewest, back: time.Duration(seconds) * time.Second}, err
	}
	return startOption{}, fmt.Errorf("start option %.60q is not known", text)
}
