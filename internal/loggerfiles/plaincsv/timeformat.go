package plaincsv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

// timeFormat is a format in the notation of strftime (POSIX), as far as loggers need it.
type timeFormat struct {
	parts []part
	// moment says that the text names a moment, and not what a clock showed.
	moment bool
}

// part is a conversion, or a text that has to be there.
type part struct {
	conversion byte
	text       string
}

// digits are the most digits of a conversion.
var digits = map[byte]int{'Y': 4, 'y': 2, 'm': 2, 'd': 2, 'j': 3, 'H': 2, 'I': 2, 'M': 2, 'S': 2, 's': 12}

// parseFormat reads a format: %Y-%m-%d %H:%M:%S.
func parseFormat(text string) (timeFormat, error) {
	var f timeFormat
	has := map[byte]bool{}
	for text != "" {
		before, after, found := strings.Cut(text, "%")
		if before != "" {
			f.parts = append(f.parts, part{text: before})
		}
		if !found {
			break
		}
		if after == "" {
			return f, errors.New("it ends with %")
		}
		conversion := after[0]
		text = after[1:]
		switch {
		case conversion == '%':
			f.parts = append(f.parts, part{text: "%"})
			continue
		case digits[conversion] == 0 && !strings.ContainsRune("bpz", rune(conversion)):
			return f, fmt.Errorf("%%%c is not known: there are %%Y %%y %%m %%d %%j %%b %%H %%I %%p %%M %%S %%z %%s", conversion)
		}
		has[conversion] = true
		f.parts = append(f.parts, part{conversion: conversion})
	}
	f.moment = has['z'] || has['s']
	day := has['j'] || ((has['m'] || has['b']) && has['d'])
	switch {
	case has['s']:
	case (!has['Y'] && !has['y']) || !day:
		return f, errors.New("it has no whole date: %Y or %y, and %m or %b with %d, or %j")
	case has['I'] != has['p'] || (has['I'] && has['H']):
		return f, errors.New("%I and %p go together, and not with %H")
	}
	return f, nil
}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// parse reads a text: what a clock showed, as if in UTC, or the moment that it names.
func (f *timeFormat) parse(text string) (time.Time, error) {
	bad := fmt.Errorf("the time %.60q is not of the declared form", text)
	rest := text
	value := map[byte]int64{'m': 1, 'd': 1}
	var fraction time.Duration
	var offset time.Duration
	for _, p := range f.parts {
		var ok bool
		switch p.conversion {
		case 0:
			rest, ok = strings.CutPrefix(rest, p.text)
		case 'b':
			rest, ok = month(rest, value)
		case 'p':
			rest, ok = half(rest, value)
		case 'z':
			offset, rest, ok = offsetOf(rest)
		default:
			value[p.conversion], rest, ok = number(rest, digits[p.conversion])
			if ok && (p.conversion == 'S' || p.conversion == 's') {
				fraction, rest = fractionOf(rest)
			}
		}
		if !ok {
			return time.Time{}, bad
		}
	}
	if rest != "" {
		return time.Time{}, bad
	}
	if seconds, has := value['s']; has {
		return time.Unix(seconds, int64(fraction)).UTC(), nil
	}
	at, ok := dateOf(value)
	if !ok {
		return time.Time{}, bad
	}
	return at.Add(fraction - offset), nil
}

// dateOf makes the time of the values of conversions.
func dateOf(value map[byte]int64) (time.Time, bool) {
	year := value['Y']
	if short, has := value['y']; has {
		year = int64(loggerfiles.FullYear(int(short)))
	}
	hour := value['H']
	if twelve, has := value['I']; has {
		if twelve < 1 || twelve > 12 {
			return time.Time{}, false
		}
		hour = twelve%12 + value['p']
	}
	month, day := value['m'], value['d']
	dayOfYear, has := value['j']
	if has {
		month, day = 1, dayOfYear
	}
	at := time.Date(int(year), time.Month(month), int(day), int(hour), int(value['M']), int(value['S']), 0, time.UTC)
	right := at.Year() == int(year) && at.Hour() == int(hour) && at.Minute() == int(value['M']) && at.Second() == int(value['S'])
	if has {
		return at, right && dayOfYear > 0
	}
	// Midnight may also be 24:00:00 of the day that ends.
	if hour == 24 && value['M'] == 0 && value['S'] == 0 {
		before := at.AddDate(0, 0, -1)
		return at, before.Month() == time.Month(month) && before.Day() == int(day)
	}
	return at, right && at.Month() == time.Month(month) && at.Day() == int(day)
}

// number reads up to so many digits.
func number(text string, most int) (int64, string, bool) {
	n := 0
	for n < len(text) && n < most && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	value, err := strconv.ParseInt(text[:n], 10, 64)
	return value, text[n:], err == nil
}

// fractionOf reads a fraction of a second, behind a point or a comma.
func fractionOf(text string) (time.Duration, string) {
	if len(text) < 2 || (text[0] != '.' && text[0] != ',') || text[1] < '0' || text[1] > '9' {
		return 0, text
	}
	rest := text[1:]
	var fraction time.Duration
	for unit := 100 * time.Millisecond; rest != "" && rest[0] >= '0' && rest[0] <= '9'; rest = rest[1:] {
		fraction += time.Duration(rest[0]-'0') * unit
		unit /= 10
	}
	return fraction, rest
}

// month reads the name of a month: its first three letters in English.
func month(text string, value map[byte]int64) (string, bool) {
	if len(text) < 3 {
		return text, false
	}
	for i, name := range months {
		if strings.EqualFold(text[:3], name) {
			value['m'] = int64(i + 1)
			return text[3:], true
		}
	}
	return text, false
}

// half reads AM or PM.
func half(text string, value map[byte]int64) (string, bool) {
	if len(text) < 2 {
		return text, false
	}
	switch strings.ToUpper(text[:2]) {
	case "AM":
		value['p'] = 0
	case "PM":
		value['p'] = 12
	default:
		return text, false
	}
	return text[2:], true
}

// offsetOf reads an offset from UTC: Z, +0100 or +01:00.
func offsetOf(text string) (time.Duration, string, bool) {
	if rest, utc := strings.CutPrefix(text, "Z"); utc {
		return 0, rest, true
	}
	if len(text) < 5 || (text[0] != '+' && text[0] != '-') {
		return 0, text, false
	}
	hours, rest, ok := number(text[1:], 2)
	rest = strings.TrimPrefix(rest, ":")
	minutes, rest, okToo := number(rest, 2)
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if text[0] == '-' {
		offset = -offset
	}
	return offset, rest, ok && okToo && hours <= 14 && minutes < 60
}
