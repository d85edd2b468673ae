package readmodel

import (
	"math"
	"time"
)

// lane is the text of outcomes, and beside it how long each took.
type lane struct{ text, durations []byte }

// add adds an outcome. What took no time, or has not ended, has no duration.
func (l *lane) add(letter byte, took, median time.Duration) {
	l.text = append(l.text, letter)
	digit := byte('0')
	if letter != running && letter != waiting && letter != heldBack && letter != superseded {
		digit = beside(took, median)
	}
	l.durations = append(l.durations, digit)
}

// latest are those that are kept.
func (l *lane) latest() (text, durations string) {
	from := max(0, len(l.text)-maxOutcomes)
	return string(l.text[from:]), string(l.durations[from:])
}

// usual is the digit of a run that took as long as the median, and stepsPerDoubling is by how
// much it grows when a run takes twice as long: a quarter is 1, four times is 9.
const (
	usual            = 5
	stepsPerDoubling = 2
)

// beside is how long something took beside the median, as a digit: 0 if that is not known.
func beside(took, median time.Duration) byte {
	if took <= 0 || median <= 0 {
		return '0'
	}
	steps := math.Round(stepsPerDoubling * math.Log2(float64(took)/float64(median)))
	return '0' + byte(min(9, max(1, usual+steps)))
}
