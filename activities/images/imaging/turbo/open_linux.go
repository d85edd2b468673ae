package turbo

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// name is that of the library's interface, in the folders that the system looks in.
const name = "libturbojpeg.so.0"

// Values of turbojpeg.h.
const (
	colorsYCbCr     = 1     // TJCS_YCbCr
	colorsGray      = 2     // TJCS_GRAY
	pixelsRGBX      = 2     // TJPF_RGBX: red, green, blue, a byte that is not read
	stopOnWarning   = 8192  // TJFLAG_STOPONWARNING
	flagProgressive = 16384 // TJFLAG_PROGRESSIVE
)

// Library is the C library. It may be used by several goroutines at a time.
type Library struct {
	initDecompress func() uintptr
	initCompress   func() uintptr
	destroy        func(handle uintptr) int32
	errorText      func(handle uintptr) string
	free           func(*byte)
	header         func(handle uintptr, file *byte, size uintptr, width, height, subsampling, colors *int32) int32
	planeWidth     func(component, width, subsampling int32) int32
	planeHeight    func(component, height, subsampling int32) int32
	toPlanes       func(handle uintptr, file *byte, size uintptr, planes **byte, width int32, strides *int32, height, flags int32) int32
	fromPlanes     func(handle uintptr, planes **byte, width int32, strides *int32, height, subsampling int32, file **byte, size *uintptr, quality, flags int32) int32
	fromPixels     func(handle uintptr, pixels *byte, width, pitch, height, format int32, file **byte, size *uintptr, subsampling, quality, flags int32) int32
}

// Open loads the library. The error says that it is not installed, or too old.
func Open() (*Library, error) {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be loaded: %w", name, err)
	}
	l := &Library{}
	for symbol, into := range map[string]any{
		"tjInitDecompress": &l.initDecompress, "tjInitCompress": &l.initCompress, "tjDestroy": &l.destroy,
		"tjGetErrorStr2": &l.errorText, "tjFree": &l.free, "tjDecompressHeader3": &l.header,
		"tjPlaneWidth": &l.planeWidth, "tjPlaneHeight": &l.planeHeight, "tjDecompressToYUVPlanes": &l.toPlanes,
		"tjCompressFromYUVPlanes": &l.fromPlanes, "tjCompress2": &l.fromPixels,
	} {
		at, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("%s is too old: %w", name, err)
		}
		purego.RegisterFunc(into, at)
	}
	return l, nil
}

// plane asks for the size of a component of a picture.
func (l *Library) plane(component int, width, height int32, s Subsampling) (w, h int) {
	return int(l.planeWidth(int32(component), width, int32(s))), int(l.planeHeight(int32(component), height, int32(s)))
}

// Decode decodes a JPEG at 1/scale of its size, rounded up; scale is 1, 2, 4 or 8. It fails at
// the first thing that is wrong with the file, and with [ErrOther].
func (l *Library) Decode(file []byte, scale int) (Planes, error) {
	if len(file) == 0 {
		return Planes{}, errors.New("the file is empty")
	}
	handle := l.initDecompress()
	if handle == 0 {
		return Planes{}, errors.New("libjpeg-turbo has no memory")
	}
	defer l.destroy(handle)
	var head struct{ width, height, subsampling, colors int32 }
	if l.header(handle, &file[0], uintptr(len(file)), &head.width, &head.height, &head.subsampling, &head.colors) != 0 {
		return Planes{}, errors.New(l.errorText(handle))
	}
	s := Subsampling(head.subsampling)
	components := 3
	switch {
	case head.colors == colorsGray && s == Gray:
		components = 1
	case head.colors != colorsYCbCr || s == Gray:
		return Planes{}, ErrOther
	}
	width, height := (int(head.width)+scale-1)/scale, (int(head.height)+scale-1)/scale
	p := Planes{Width: width, Height: height, Subsampling: s}
	const common = 64 // A multiple of all factors.
	for i := range components {
		w, h := l.plane(i, int32(width), int32(height), s)
		across, down := l.plane(i, common, common, s)
		if w <= 0 || h <= 0 || across <= 0 || down <= 0 {
			return Planes{}, fmt.Errorf("libjpeg-turbo knows no planes of subsampling %d", s)
		}
		p.Planes = append(p.Planes, Plane{
			Pix: make([]byte, w*h), Stride: w, Width: w, Height: h,
			Across: float64(across) / common, Down: float64(down) / common,
		})
	}
	c := newCall(p.Planes)
	defer c.pinner.Unpin()
	if l.toPlanes(handle, &file[0], uintptr(len(file)), &c.planes[0], int32(width), &c.strides[0], int32(height), stopOnWarning) != 0 {
		return Planes{}, errors.New(l.errorText(handle))
	}
	runtime.KeepAlive(file)
	return p, nil
}

// call holds what C reads of planes, where Go does not move it.
type call struct {
	planes  [3]*byte
	strides [3]int32
	pinner  runtime.Pinner
}

func newCall(planes []Plane) *call {
	c := &call{}
	c.pinner.Pin(c)
	for i, p := range planes {
		c.pinner.Pin(&p.Pix[0])
		c.planes[i], c.strides[i] = &p.Pix[0], int32(p.Stride)
	}
	return c
}

// Encode encodes planes at a quality from 1 to 100.
func (l *Library) Encode(p Planes, quality int, progressive bool) ([]byte, error) {
	planes := make([]Plane, len(p.Planes))
	for i, from := range p.Planes {
		w, h := l.plane(i, int32(p.Width), int32(p.Height), p.Subsampling)
		planes[i] = from.padded(w, h)
	}
	c := newCall(planes)
	defer c.pinner.Unpin()
	return l.compress(func(handle uintptr, file **byte, size *uintptr) int32 {
		return l.fromPlanes(handle, &c.planes[0], int32(p.Width), &c.strides[0], int32(p.Height), int32(p.Subsampling), file, size, int32(quality), flags(progressive))
	})
}

// EncodeRGB encodes pixels of four bytes: red, green, blue and one that is not read. Chroma gets
// half of the width and of the height.
func (l *Library) EncodeRGB(pix []byte, width, height, quality int, progressive bool) ([]byte, error) {
	return l.compress(func(handle uintptr, file **byte, size *uintptr) int32 {
		return l.fromPixels(handle, &pix[0], int32(width), int32(4*width), int32(height), pixelsRGBX, file, size, int32(Quarter), int32(quality), flags(progressive))
	})
}

func flags(progressive bool) int32 {
	if progressive {
		return flagProgressive
	}
	return 0
}

// compress takes the file that the library makes.
func (l *Library) compress(run func(handle uintptr, file **byte, size *uintptr) int32) ([]byte, error) {
	handle := l.initCompress()
	if handle == 0 {
		return nil, errors.New("libjpeg-turbo has no memory")
	}
	defer l.destroy(handle)
	var made struct {
		file *byte
		size uintptr
	}
	failed := run(handle, &made.file, &made.size) != 0
	if made.file != nil {
		defer l.free(made.file)
	}
	if failed {
		return nil, errors.New(l.errorText(handle))
	}
	return append([]byte(nil), unsafe.Slice(made.file, made.size)...), nil //nolint:gosec // Memory of C, copied before it is freed.
}

// padded gives a plane of at least that size: the library reads whole groups of samples. What it
// lacks repeats its last column and row.
func (p Plane) padded(w, h int) Plane {
	if w <= p.Width && h <= p.Height {
		return p
	}
	out := Plane{Pix: make([]byte, w*h), Stride: w, Width: w, Height: h}
	for y := range h {
		from := p.Pix[min(y, p.Height-1)*p.Stride:]
		row := out.Pix[y*w : (y+1)*w]
		n := copy(row, from[:min(p.Width, w)])
		for x := n; x < w; x++ {
			row[x] = row[n-1]
		}
	}
	return out
}
