package imaging

// plane is one channel of a picture: 8-bit samples on a grid that covers the
// picture's area, not necessarily at one sample per picture pixel.
//
// Picture coordinates count pixels from the top left corner of the picture. The
// sample in column i covers [x0+i/sx, x0+(i+1)/sx) of them, so that chroma at
// half the resolution has sx = 0.5, and cropping only moves x0.
type plane struct {
	pix    []uint8
	stride int
	w, h   int
	x0, y0 float64 // picture coordinates of the plane's top left corner
	sx, sy float64 // samples per picture pixel
}

func newPlane(w, h int) plane {
	return plane{pix: make([]uint8, w*h), stride: w, w: w, h: h, sx: 1, sy: 1}
}

func (p plane) row(y int) []uint8 { return p.pix[y*p.stride : y*p.stride+p.w] }

// boxReducer averages blocks of k×k samples of a plane of w×h, row by row. Blocks at the right and
// lower edge average what there is of them.
type boxReducer struct {
	out  plane
	w, h int
	k    int
	y    int      // rows so far
	sums []uint32 // of the blocks that are open
}

func newBoxReducer(w, h, k int) *boxReducer {
	b := &boxReducer{out: newPlane((w+k-1)/k, (h+k-1)/k), w: w, h: h, k: k}
	b.out.sx, b.out.sy = 1/float64(k), 1/float64(k)
	b.sums = make([]uint32, b.out.w)
	return b
}

// add takes the next row. It does not keep it.
func (b *boxReducer) add(row []uint8) {
	dst := b.out.row(b.y / b.k)
	b.y++
	if b.k == 1 {
		copy(dst, row)
		return
	}
	addBlocks(b.sums, row[:b.w], b.k)
	if b.y%b.k != 0 && b.y != b.h {
		return
	}
	rows := (b.y-1)%b.k + 1
	for bx, sum := range b.sums {
		n := uint32((min(bx*b.k+b.k, b.w) - bx*b.k) * rows)
		dst[bx] = uint8((sum + n/2) / n)
	}
	clear(b.sums)
}

// reduced is a plane of w×h reduced by k. It takes each row once.
func reduced(row func(y int) []uint8, w, h, k int) plane {
	b := newBoxReducer(w, h, k)
	for y := range h {
		b.add(row(y))
	}
	return b.out
}

// addBlocks adds up each k samples of a row. Two has its own loop because most
// photos take it and it is twice as fast.
func addBlocks(sums []uint32, row []uint8, k int) {
	if k == 2 {
		for len(row) >= 2 && len(sums) > 0 {
			sums[0] += uint32(row[0]) + uint32(row[1])
			row, sums = row[2:], sums[1:]
		}
	}
	for bx := range sums {
		for _, v := range row[bx*k : min(bx*k+k, len(row))] {
			sums[bx] += uint32(v)
		}
	}
}

// orient turns the samples; w and h are the picture's size before it.
func (p plane) orient(o Orientation, w, h int) plane {
	if o == Normal {
		return p
	}
	// Mirrored, the plane begins where it used to end.
	mirroredX := float64(w) - (p.x0 + float64(p.w)/p.sx)
	mirroredY := float64(h) - (p.y0 + float64(p.h)/p.sy)
	out := newPlane(p.w, p.h)
	out.sx, out.sy, out.x0, out.y0 = p.sx, p.sy, p.x0, p.y0
	if o.swaps() {
		out = newPlane(p.h, p.w)
		out.sx, out.sy, out.x0, out.y0 = p.sy, p.sx, p.y0, p.x0
	}
	// The sample at (x, y) goes to start + x·dx + y·dy.
	var start, dx, dy int
	s := out.stride
	switch o {
	case Normal:
	case FlipHorizontal:
		start, dx, dy = out.w-1, -1, s
		out.x0 = mirroredX
	case Rotate180:
		start, dx, dy = out.w-1+(out.h-1)*s, -1, -s
		out.x0, out.y0 = mirroredX, mirroredY
	case FlipVertical:
		start, dx, dy = (out.h-1)*s, 1, -s
		out.y0 = mirroredY
	case Transpose:
		start, dx, dy = 0, s, 1
	case Rotate90:
		start, dx, dy = out.w-1, s, -1
		out.x0 = mirroredY
	case Transverse:
		start, dx, dy = out.w-1+(out.h-1)*s, -s, -1
		out.x0, out.y0 = mirroredY, mirroredX
	case Rotate270:
		start, dx, dy = (out.h-1)*s, -s, 1
		out.y0 = mirroredX
	}
	// In squares, so that a turn by 90° stays within the caches.
	const block = 32
	for top := 0; top < p.h; top += block {
		for left := 0; left < p.w; left += block {
			right := min(left+block, p.w)
			for y := top; y < min(top+block, p.h); y++ {
				at := start + left*dx + y*dy
				for _, v := range p.row(y)[left:right] {
					out.pix[at] = v
					at += dx
				}
			}
		}
	}
	return out
}
