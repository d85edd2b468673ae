package svg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a document.
const (
	// MaxBytes bounds the file.
	MaxBytes = 1 << 20
	// MaxElements bounds its elements, those that are dropped included.
	MaxElements = 20_000
	// MaxDepth bounds how deep elements are nested.
	MaxDepth = 64
	// MaxUses bounds elements use. What one shows has no use in it.
	MaxUses = 200
)

// Document is a sanitised document.
type Document struct {
	// Text is the whole of it, in UTF-8.
	Text []byte
	// Width and Height are those of its view box, in its own units. Only their ratio counts.
	Width, Height float64
	// NotDrawn are the elements that Draw leaves out, such as text, in order.
	NotDrawn []string
}

// Looks reports whether a file begins as an SVG does. Sanitize says whether it is one.
func Looks(data []byte) bool {
	head := strings.ToLower(string(bytes.TrimLeft(bytes.TrimPrefix(data[:min(len(data), 1024)], []byte("\xef\xbb\xbf")), " \t\r\n")))
	return strings.HasPrefix(head, "<svg") || (strings.HasPrefix(head, "<?xml") || strings.HasPrefix(head, "<!")) && strings.Contains(head, "<svg")
}

// elements are those that stay: true for what Draw shows, and for what shows nothing itself.
var elements = map[string]bool{
	"svg": true, "g": true, "defs": true, "title": true, "desc": true, "style": true,
	"path": true, "rect": true, "circle": true, "ellipse": true, "line": true, "polyline": true, "polygon": true,
	"linearGradient": true, "radialGradient": true, "stop": true, "use": true,
	"symbol": false, "clipPath": false, "mask": false, "text": false, "tspan": false,
}

// attributes are those that stay. Their values are checked by cleanValue.
var attributes = set(`id class style transform d points x y x1 y1 x2 y2 cx cy r rx ry fx fy width height viewBox
	preserveAspectRatio version offset gradientUnits gradientTransform spreadMethod clipPathUnits maskUnits maskContentUnits
	fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-miterlimit
	stroke-dasharray stroke-dashoffset stop-color stop-opacity opacity color clip-path clip-rule mask display visibility
	font-family font-size font-weight font-style text-anchor letter-spacing dx dy href`)

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(words) {
		all[word] = true
	}
	return all
}

// Sanitize reads a document. The error is one sentence.
func Sanitize(data []byte) (Document, error) {
	if len(data) > MaxBytes {
		return Document{}, fmt.Errorf("the SVG file has %d bytes, more than the limit of %d", len(data), MaxBytes)
	}
	r := &reader{left: map[string]bool{}, shown: map[string]bool{}}
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.take(token)
		}
		if err != nil {
			return Document{}, fmt.Errorf("the SVG file cannot be read: %w", err)
		}
	}
	switch {
	case !r.done:
		return Document{}, errors.New("the SVG file cannot be read: it is cut short")
	case r.nestedUse():
		return Document{}, errors.New("the SVG file cannot be read: an element use shows another use")
	}
	r.doc.Text, r.doc.NotDrawn = r.out.Bytes(), slices.Sorted(maps.Keys(r.left))
	return r.doc, nil
}

// reader writes what stays of a document.
type reader struct {
	out   bytes.Buffer
	doc   Document
	count int // of elements
	uses  int
	open  []element
	drop  int  // how many of the open elements, from the first one that is dropped on
	done  bool // the root has ended

	left   map[string]bool // names of elements that are not drawn
	shown  map[string]bool // ids that elements use show
	within []string        // ids that elements use are below, with "" for none
}

type element struct{ name, prefix, id, after string }

// take takes a token in.
func (r *reader) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.Directive:
		if text := string(t); strings.Contains(text, "[") || strings.Contains(strings.ToUpper(text), "ENTITY") {
			return errors.New("it declares entities")
		}
	case xml.StartElement:
		return r.start(t)
	case xml.EndElement:
		return r.end(t)
	case xml.CharData:
		if r.drop > 0 || len(r.open) == 0 {
			return nil
		}
		return r.text(r.open[len(r.open)-1].name, string(t))
	}
	return nil
}

func (r *reader) start(t xml.StartElement) error {
	name := t.Name.Local
	if r.count++; r.count > MaxElements {
		return fmt.Errorf("it has more than %d elements", MaxElements)
	}
	if len(r.open) == MaxDepth {
		return fmt.Errorf("its elements are nested more than %d deep", MaxDepth)
	}
	if r.done || len(r.open) == 0 && (name != "svg" || t.Name.Space != "") {
		return errors.New("its only root is not the element svg")
	}
	drawn, known := elements[name]
	e := element{name: name, prefix: t.Name.Space}
	if r.drop > 0 || !known || t.Name.Space != "" || len(r.open) > 0 && name == "svg" {
		r.drop++
		if t.Name.Space == "" && r.drop == 1 && name != "metadata" {
			r.left[name] = true
		}
		r.open = append(r.open, e)
		return nil
	}
	if !drawn {
		r.left[name] = true
	}
	kept, err := r.attributes(name, t.Attr)
	if err != nil {
		return err
	}
	for _, a := range kept {
		if a[0] == "id" {
			e.id = a[1]
		}
	}
	if len(r.open) == 0 {
		if kept, err = r.root(kept); err != nil {
			return err
		}
	}
	if name == "style" && (len(r.open) == 0 || r.open[len(r.open)-1].name != "defs") { // The engine reads styles of defs alone.
		r.out.WriteString("<defs>")
		e.after = "</defs>"
	}
	r.open = append(r.open, e)
	r.out.WriteString("<" + name)
	for _, a := range kept {
		r.out.WriteString(" " + a[0] + `="`)
		_ = xml.EscapeText(&r.out, []byte(a[1])) // A buffer takes all.
		r.out.WriteByte('"')
	}
	r.out.WriteByte('>')
	return nil
}

// attributes are those that stay, as names and values.
func (r *reader) attributes(element string, all []xml.Attr) (kept [][2]string, err error) {
	seen := map[string]bool{}
	for _, a := range all {
		name := a.Name.Local
		if a.Name.Space != "" && (a.Name.Space != "xlink" || name != "href") || !attributes[name] || seen[name] {
			continue
		}
		value := strings.TrimSpace(a.Value)
		switch name {
		case "href":
			if !fragment.MatchString(value) || element != "use" && !strings.HasSuffix(element, "Gradient") {
				continue
			}
			if element == "use" {
				if r.uses++; r.uses > MaxUses {
					return nil, fmt.Errorf("it has more than %d elements use", MaxUses)
				}
				r.shown[value[1:]] = true
				for _, e := range r.open {
					if e.id != "" {
						r.within = append(r.within, e.id)
					}
				}
			}
		case "id":
			if !fragment.MatchString("#" + value) {
				continue
			}
		case "transform", "gradientTransform":
			// The engine takes scale(2) for a height of zero.
			value = scaleOnce.ReplaceAllString(value, "scale($1,$1)")
		}
		if !cleanValue(value) {
			continue
		}
		seen[name] = true
		kept = append(kept, [2]string{name, value})
	}
	return kept, nil
}

var (
	fragment  = regexp.MustCompile(`^#[A-Za-z_][A-Za-z0-9_.:-]*$`)
	reference = regexp.MustCompile(`(?i)url\(\s*(["']?)#[a-z_][a-z0-9_.:-]*(["']?)\s*\)`)
	scaleOnce = regexp.MustCompile(`scale\(\s*([^\s,()]+)\s*\)`)
)

// functions are those that values may call: of colors and of transforms.
var (
	function  = regexp.MustCompile(`([a-z0-9-]*)\s*\(`)
	functions = set("rgb rgba hsl hsla matrix translate scale rotate skewx skewy")
)

// cleanValue reports whether a value of an attribute, or a style, has nothing in it but words and
// numbers, and refers to nothing outside. Backslashes are escapes of CSS, which hide words.
func cleanValue(value string) bool {
	rest := strings.ToLower(reference.ReplaceAllString(value, ""))
	for _, word := range []string{"url", "script", "@", "\\", "<", "&", "//", "data:", "behavior", "binding"} {
		if strings.Contains(rest, word) {
			return false
		}
	}
	for _, found := range function.FindAllStringSubmatch(rest, -1) {
		if !functions[found[1]] {
			return false
		}
	}
	return !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\r\n", c) })
}

// root reads the size of the document from its root, and gives the attributes to write.
func (r *reader) root(kept [][2]string) ([][2]string, error) {
	values := map[string]string{}
	for _, a := range kept {
		values[a[0]] = a[1]
	}
	box := numbers(values["viewBox"])
	if len(box) != 4 {
		box = numbers(strings.TrimSuffix(values["width"], "px") + " " + strings.TrimSuffix(values["height"], "px"))
		if len(box) == 2 {
			box = append([]float64{0, 0}, box...)
		}
	}
	if len(box) != 4 || box[2] <= 0 || box[3] <= 0 {
		return nil, errors.New("it says no size: it has neither a viewBox nor width and height as numbers")
	}
	if ratio := box[2] / box[3]; ratio > maxRatio || ratio < 1/float64(maxRatio) {
		return nil, fmt.Errorf("one side is more than %d times as long as the other", maxRatio)
	}
	r.doc.Width, r.doc.Height = box[2], box[3]
	kept = slices.DeleteFunc(kept, func(a [2]string) bool {
		isSide := a[0] == "width" || a[0] == "height"
		return a[0] == "viewBox" || a[0] == "preserveAspectRatio" || isSide && len(numbers(strings.TrimSuffix(a[1], "px"))) != 1
	})
	return append([][2]string{
		{"xmlns", "http://www.w3.org/2000/svg"},
		{"viewBox", fmt.Sprintf("%g %g %g %g", box[0], box[1], box[2], box[3])},
	}, kept...), nil
}

// maxRatio is more than a logo has.
const maxRatio = 1000

// numbers reads finite numbers, with spaces or commas between them. It gives none if one is wrong.
func numbers(text string) (all []float64) {
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,\t\r\n", c) }) {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || math.IsNaN(n) || math.Abs(n) > 1e6 {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// text writes the text of elements that have any.
func (r *reader) text(element, text string) error {
	switch element {
	case "style":
		if !cleanValue(text) {
			return errors.New("its style refers to something outside, or hides it")
		}
	case "text", "tspan", "title", "desc":
	default:
		return nil
	}
	return xml.EscapeText(&r.out, []byte(text))
}

func (r *reader) end(t xml.EndElement) error {
	if len(r.open) == 0 {
		return errors.New("an element ends that has not begun")
	}
	e := r.open[len(r.open)-1]
	if e.name != t.Name.Local || e.prefix != t.Name.Space {
		return fmt.Errorf("element %.40q ends as %.40q", e.name, t.Name.Local)
	}
	r.open = r.open[:len(r.open)-1]
	r.done = len(r.open) == 0
	if r.drop > 0 {
		r.drop--
		return nil
	}
	r.out.WriteString("</" + e.name + ">" + e.after)
	return nil
}

// nestedUse reports whether an element use is shown by another one, or by itself.
func (r *reader) nestedUse() bool {
	return slices.ContainsFunc(r.within, func(id string) bool { return r.shown[id] })
}
