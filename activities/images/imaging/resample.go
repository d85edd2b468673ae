package imaging

import "math"

// resample covers the picture, down to a width and a height in picture coordinates, with w×h
// samples. It filters with a Catmull-Rom spline,
// stretched when it reduces so that nothing aliases. Arithmetic is in integers
// with 14 fractional bits; between the passes samples have 8 bits.
func (p plane) resample(width, height float64, w, h int) plane {
	columns := filter(-p.x0*p.sx, width*p.sx/float64(w), w, p.w)
	rows := filter(-p.y0*p.sy, height*p.sy/float64(h), h, p.h)

	// Columns first, of those rows alone that the second pass reads.
	first, last := rows[0].start, rows[0].start
	for _, t := range rows {
		first, last = min(first, t.start), max(last, t.start+len(t.weights))
	}
	narrow := newPlane(w, last-first)
	for row := range narrow.h {
		src, dst := p.row(first+row), narrow.row(row)
		for i, t := range columns {
			var sum int32 = half
			window := src[t.start : t.start+len(t.weights)]
			for j, weight := range t.weights {
				sum += weight * int32(window[j])
			}
			dst[i] = clamp(sum >> fraction)
		}
	}

	out := newPlane(w, h)
	sums := make([]int32, w)
	for i, t := range rows {
		for j := range sums {
			sums[j] = half
		}
		for j, weight := range t.weights {
			src := narrow.row(t.start - first + j)
			for x, v := range src[:len(sums)] {
				sums[x] += weight * int32(v)
			}
		}
		dst := out.row(i)
		for x, sum := range sums {
			dst[x] = clamp(sum >> fraction)
		}
	}
	return out
}

const (
	fraction = 14
	one      = 1 << fraction
	half     = one / 2
)

func clamp(v int32) uint8 { return uint8(min(max(v, 0), 255)) }

// taps are the weights of the samples that make one sample of the result.
type taps struct {
	start   int
	weights []int32 // sum to one
}

// filter computes the taps of n samples that lie step source samples apart, the
// first covering [from, from+step), over a row of size samples. Beyond its ends
// the row goes on with its last sample.
func filter(from, step float64, n, size int) []taps {
	scale := math.Max(step, 1)
	support := 2 * scale
	most := int(2*support) + 2
	all := make([]taps, n)
	scratch := make([]float64, most)
	store := make([]int32, n*most) // of all taps, so that they lie side by side
	for i := range all {
		// Conversions keep a compiler from fusing the operations, which would
		// give other bits on other processors.
		center := from + float64((float64(i)+0.5)*step) - 0.5
		low, high := int(math.Ceil(center-support)), int(math.Floor(center+support))
		start, end := min(max(low, 0), size-1), min(max(high, 0), size-1)
		weights := scratch[:end-start+1]
		clear(weights)
		total := 0.0
		for j := low; j <= high; j++ {
			weight := catmullRom((float64(j) - center) / scale)
			weights[min(max(j, start), end)-start] += weight
			total += weight
		}
		all[i] = taps{start: start, weights: store[:len(weights):len(weights)]}
		store = store[len(weights):]
		quantize(all[i].weights, weights, total)
	}
	return all
}

// quantize turns weights into integers that sum to one exactly: otherwise flat
// areas would change their value.
func quantize(into []int32, weights []float64, total float64) {
	rest, largest := int32(one), 0
	for i, weight := range weights {
		into[i] = int32(math.Round(weight / total * one))
		rest -= into[i]
		if into[i] > into[largest] {
			largest = i
		}
	}
	into[largest] += rest
}

// catmullRom is the cubic spline of Catmull and Rom (B = 0, C = ½ in the family
// of Mitchell and Netravali).
func catmullRom(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 1:
		return float64(float64(float64(1.5*x)-2.5)*float64(x*x)) + 1
	case x < 2:
		return float64(float64(float64(float64(float64(-0.5*x)+2.5)*x)-4)*x) + 2
	}
	return 0
}
