package svg_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/svg"
)

const open = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 100 50">`

// What runs, loads or refers is dropped, and the rest stays.
func TestHostileContentIsDropped(t *testing.T) {
	t.Parallel()
	for name, hostile := range map[string]string{
		"script":              `<script>alert(1)</script>`,
		"script of a prefix":  `<svg:script>alert(1)</svg:script>`,
		"script in CDATA":     `<script><![CDATA[alert(1)]]></script>`,
		"handler":             `<g onload="alert(1)" onClick="alert(1)"/>`,
		"foreign object":      `<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><iframe src="http://evil.example"/></body></foreignObject>`,
		"link":                `<a xlink:href="javascript:alert(1)"><path d="M0 0"/></a>`,
		"picture of a file":   `<image xlink:href="file:///etc/passwd" width="10" height="10"/>`,
		"picture of a server": `<image href="http://evil.example/x.png"/>`,
		"use of a server":     `<use xlink:href="http://evil.example/x.svg#a"/>`,
		"use of data":         `<use href="data:image/svg+xml;base64,AAAA#a"/>`,
		"use of a script":     `<use href="&#106;avascript:alert(1)"/>`,
		"gradient of a file":  `<linearGradient xlink:href="evil.svg#g"/>`,
		"fill of a server":    `<rect fill="url(http://evil.example/#a)"/>`,
		"fill of two":         `<rect fill="url(#a) url(//evil.example)"/>`,
		"style of a server":   `<rect style="fill:url('http://evil.example/a')"/>`,
		"style with escapes":  `<rect style="fill:\75 rl(http://evil.example/a)"/>`,
		"style with function": `<rect style="background:image-set('evil.png' 1x)"/>`,
		"expression":          `<rect style="width:expression(alert(1))"/>`,
		"filter":              `<filter><feImage href="http://evil.example"/></filter>`,
		"animation":           `<animate attributeName="href" to="javascript:alert(1)"/><set attributeName="onload" to="alert(1)"/>`,
		"base":                `<g xml:base="http://evil.example/"/>`,
		"stylesheet":          `<?xml-stylesheet href="http://evil.example/a.css"?>`,
		"comment":             `<!-- <script>alert(1)</script> -->`,
		"nested svg":          `<svg onload="alert(1)"><script/></svg>`,
		"handler of a prefix": `<g xmlns:x="http://www.w3.org/2000/svg" x:onload="alert(1)"/>`,
		"text":                `<text>&lt;script&gt;alert(1)</text>`,
		"title":               `<title><![CDATA[</title><script>alert(1)</script>]]></title>`,
		"attribute":           `<g id="a&quot; onload=&quot;alert(1)"/>`,
		"class":               `<g class="&lt;script&gt;"/>`,
	} {
		document, err := svg.Sanitize([]byte(open + `<path d="M1 2 3 4"/>` + hostile + `<circle r="5"/></svg>`))
		require.NoError(t, err, name)
		require.Contains(t, string(document.Text), `<path d="M1 2 3 4"></path>`, name)
		require.Contains(t, string(document.Text), `<circle r="5"></circle>`, name)
		requireHarmless(t, name, document.Text)
	}
}

var names = regexp.MustCompile(`(?i)^(on.*|.*href|src|base)$`)

// requireHarmless reads a document as browsers do.
func requireHarmless(t testing.TB, name string, text []byte) {
	t.Helper()
	again, err := svg.Sanitize(text)
	require.NoError(t, err, name)
	require.Equal(t, string(text), string(again.Text), "%s: sanitised again it is another one", name)
	decoder := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, name)
		switch token := token.(type) {
		case xml.StartElement:
			require.Equal(t, "http://www.w3.org/2000/svg", token.Name.Space, name)
			require.NotContains(t, []string{"script", "foreignObject", "image", "a", "animate", "set", "filter", "iframe"}, token.Name.Local, name)
			for _, a := range token.Attr {
				if a.Name.Local == "href" {
					require.Regexp(t, `^#`, a.Value, name)
				} else {
					require.NotRegexp(t, names, a.Name.Local, name)
				}
				require.NotContains(t, strings.ToLower(a.Value), "evil", name)
				require.NotContains(t, strings.ToLower(a.Value), "script:", name)
			}
		case xml.Directive, xml.ProcInst, xml.Comment:
			require.Fail(t, "neither stays", "%s: %T", name, token)
		}
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	var laughs strings.Builder
	laughs.WriteString(`<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY l0 "lol">`)
	for n := range 9 {
		fmt.Fprintf(&laughs, `<!ENTITY l%d "%s">`, n+1, strings.Repeat(fmt.Sprintf("&l%d;", n), 10))
	}
	laughs.WriteString(`]>` + open + `<text>&l9;</text></svg>`)
	for name, c := range map[string]struct{ text, want string }{
		"billion laughs":   {laughs.String(), "it declares entities"},
		"file as entity":   {`<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + open + `<text>&x;</text></svg>`, "it declares entities"},
		"unknown entity":   {open + `<text>&x;</text></svg>`, "invalid character entity"},
		"laughs of use":    {open + `<g id="a"><path d="M0 0"/></g><g id="b"><use href="#a"/><use href="#a"/></g><use href="#b"/></svg>`, "an element use shows another use"},
		"use of itself":    {open + `<g id="a"><use href="#a"/></g></svg>`, "an element use shows another use"},
		"many uses":        {open + strings.Repeat(`<use href="#a"/>`, svg.MaxUses+1) + `</svg>`, "more than 200 elements use"},
		"many elements":    {open + strings.Repeat(`<g/>`, svg.MaxElements) + `</svg>`, "more than 20000 elements"},
		"deep":             {open + strings.Repeat(`<g>`, svg.MaxDepth), "nested more than 64 deep"},
		"deep and dropped": {open + strings.Repeat(`<x>`, svg.MaxDepth), "nested more than 64 deep"},
		"large":            {open + strings.Repeat(" ", svg.MaxBytes), "more than the limit of 1048576"},
		"cut short":        {open + `<g>`, "cut short"},
		"wrong end":        {open + `<g></h></svg>`, `element "g" ends as "h"`},
		"two roots":        {open + `</svg><svg/>`, "its only root"},
		"another root":     {`<html><svg/></html>`, "its only root"},
		"a prefix":         {`<svg:svg xmlns:svg="http://www.w3.org/2000/svg"/>`, "its only root"},
		"no size":          {`<svg width="100%"/>`, "it says no size"},
		"no area":          {`<svg viewBox="0 0 0 10"/>`, "it says no size"},
		"huge":             {`<svg viewBox="0 0 1e300 1e300"/>`, "it says no size"},
		"not a number":     {`<svg viewBox="0 0 NaN Inf"/>`, "it says no size"},
		"narrow":           {`<svg viewBox="0 0 1 100000"/>`, "1000 times"},
		"import of styles": {open + `<style>@import url(http://evil.example/a.css);</style></svg>`, "its style refers"},
		"font of a server": {open + `<style>@font-face{src:url(//evil.example)}</style></svg>`, "its style refers"},
		"another charset":  {`<?xml version="1.0" encoding="UTF-16"?>` + open + `</svg>`, "encoding"},
		"binary":           {open + "\x00</svg>", "illegal character"},
		"empty":            {"", "cut short"},
	} {
		_, err := svg.Sanitize([]byte(c.text))
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), "\n", name)
		require.Less(t, len(err.Error()), 200, name)
	}
}

// TestDraw: colors from attributes, styles and classes, gradients, groups, and transforms.
func TestDraw(t *testing.T) {
	t.Parallel()
	document, err := svg.Sanitize([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" width="200px" height="100px" viewBox="10 0 200 100">
  <style type="text/css"><![CDATA[.blue{fill:#0000ff;}]]></style>
  <linearGradient id="fade"><stop offset="0" stop-color="#00ff00"/><stop offset="1" stop-color="#00ff00"/></linearGradient>
  <rect x="10" width="50" height="100" fill="red"/>
  <rect x="60" width="50" height="50" class="blue"/>
  <g transform="translate(110,0) scale(2)"><rect width="25" height="25" style="fill:url(#fade)"/></g>
  <path d="M160 0h50v50h-50z" fill="#123456" fill-opacity="0.5"/>
  <text x="20" y="20">words</text>
</svg>`))
	require.NoError(t, err)
	require.Equal(t, []float64{200, 100}, []float64{document.Width, document.Height})
	require.Equal(t, []string{"text"}, document.NotDrawn)
	require.NotContains(t, string(document.Text), "DOCTYPE")
	img, err := document.Draw(400, 200)
	require.NoError(t, err)
	for _, c := range []struct {
		x, y int
		want color.RGBA
	}{
		{50, 100, color.RGBA{R: 255, A: 255}}, {150, 50, color.RGBA{B: 255, A: 255}}, {250, 50, color.RGBA{G: 255, A: 255}},
		{250, 150, color.RGBA{}}, {350, 50, color.RGBA{R: 0x09, G: 0x1a, B: 0x2b, A: 0x80}},
	} {
		got := img.RGBAAt(c.x, c.y)
		for n, have := range []uint8{got.R, got.G, got.B, got.A} {
			require.InDelta(t, []uint8{c.want.R, c.want.G, c.want.B, c.want.A}[n], have, 2, "%d,%d: %v", c.x, c.y, got)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add([]byte(open + `<style>.a{fill:red}</style><g id="a" transform="scale(2)"><path d="M0 0L1 1z"/></g></svg>`))
	f.Add([]byte(open + `<text>&amp;<tspan x="1">b</tspan></text><use href="#a"/></svg>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := svg.Sanitize(data)
		if err != nil {
			return
		}
		requireHarmless(t, "fuzz", document.Text)
	})
}
