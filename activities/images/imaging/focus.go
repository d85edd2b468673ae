package imaging

import (
	"context"
	"math"
)

// FocusOn says how the focus of a picture is found.
type FocusOn string

// Entropy is the part in which neighbours differ most, and in the most ways.
const Entropy FocusOn = "entropy"

// focusSide is the longest side of what is looked at.
const focusSide = 200

// focus finds the focus of outputs that have it found, in the picture that was decoded.
func (o *opened) focus(ctx context.Context, outputs []Wanted, shapes []shape) error {
	var gray plane
	for n, w := range outputs {
		if w.FocusOn != Entropy || w.Fit != Cover {
			continue
		}
		if gray.pix == nil {
			img, err := o.small(ctx, focusSide)
			if err != nil {
				return err
			}
			gray = luma(img)
		}
		cut := w.shape(gray.w, gray.h).cut
		point := gray.densest(cut.Dx(), cut.Dy())
		w.Focus = &point
		shapes[n] = w.shape(o.info.Width, o.info.Height)
	}
	return nil
}

// densest is the middle of the part of w×h samples with the most entropy: that of how much each
// sample differs from the next ones. One of both sides is that of the plane. Of parts that are
// about equal it is the one between them.
func (p plane) densest(w, h int) Point {
	const levels, equal = 32, 0.98
	along, across, part := p.w, p.h, w
	if h < p.h {
		along, across, part = p.h, p.w, h
	}
	at := func(i, j int) int {
		if h < p.h {
			i, j = j, i
		}
		return int(p.pix[min(j, p.h-1)*p.stride+min(i, p.w-1)])
	}
	lines := make([][levels]int, along) // how often each level is in it
	for i := range lines {
		for j := range across {
			change := max(at(i, j), at(i+1, j)) - min(at(i, j), at(i+1, j)) + max(at(i, j), at(i, j+1)) - min(at(i, j), at(i, j+1))
			lines[i][min(change, 255)*levels/256]++
		}
	}
	var counts [levels]int
	entropies := make([]float64, along-part+1)
	best := 0
	for i, line := range lines {
		for level, n := range line {
			counts[level] += n
			if i >= part {
				counts[level] -= lines[i-part][level]
			}
		}
		if start := i - part + 1; start >= 0 {
			for _, n := range counts {
				if share := float64(n) / float64(part*across); n > 0 {
					entropies[start] -= share * math.Log2(share)
				}
			}
			if entropies[start] > entropies[best] {
				best = start
			}
		}
	}
	first, last := best, best
	for first > 0 && entropies[first-1] >= equal*entropies[best] {
		first--
	}
	for last < len(entropies)-1 && entropies[last+1] >= equal*entropies[best] {
		last++
	}
	middle := float64(first+last+part) / 2 / float64(along)
	if h < p.h {
		return Point{X: 0.5, Y: middle}
	}
	return Point{X: middle, Y: 0.5}
}
