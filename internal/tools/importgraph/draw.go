package main

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
)

// Sizes in pixels. Package names are in a fixed-width font, so that their width is known.
const (
	imageWidth = 960
	margin     = 20
	gap        = 34 // between rows, for the arrows
	padding    = 12
	titleLine  = 20
	nameLine   = 17
	charWidth  = 7.25
	apart      = 24 // minimum distance between arrows
)

const style = `<style>
.page { fill: #ffffff }
.box { fill: #eef4fb; stroke: #5b7ea6 }
.title { font: bold 14px sans-serif; fill: #12263f }
.about { font: 13px sans-serif; fill: #3d4f66 }
.names { font: 12px monospace; fill: #12263f }
.arrow { stroke: #5b7ea6; stroke-width: 1.5; fill: none }
.head { fill: #5b7ea6 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 }
.box { fill: #16202c; stroke: #6f9bd1 }
.title { fill: #e6edf3 }
.about { fill: #a9b8c9 }
.names { fill: #e6edf3 }
.arrow { stroke: #6f9bd1 }
.head { fill: #6f9bd1 }
}
</style>
`

// box is a layer with its position in the image.
type box struct {
	layer
	lines       []string // package names
	top, bottom int
}

// draw returns the image as SVG.
func draw(g *graph) ([]byte, error) {
	boxes, height := place(g)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-label="Packages of tracedag in layers; arrows point from importing to imported layers, always down">`+
		"\n",
		imageWidth, height, imageWidth, height)
	out.WriteString(style)
	fmt.Fprintf(&out, `<rect class="page" width="%d" height="%d"/>`+"\n", imageWidth, height)
	for _, b := range boxes {
		fmt.Fprintf(&out, `<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n",
			b.from, b.top, b.to-b.from, b.bottom-b.top)
		y := b.top + padding + 10
		fmt.Fprintf(&out,
			`<text x="%d" y="%d"><tspan class="title">%s</tspan><tspan class="about" dx="10">%s</tspan></text>`+"\n",
			b.from+padding, y, html.EscapeString(b.name), html.EscapeString(b.about))
		for i, line := range b.lines {
			fmt.Fprintf(&out, `<text class="names" x="%d" y="%d">%s</text>`+"\n",
				b.from+padding, y+titleLine+i*nameLine, html.EscapeString(line))
		}
	}
	var used []arrow
	for _, e := range g.reduced() {
		a, err := route(boxes, e[0], e[1], used)
		if err != nil {
			return nil, err
		}
		used = append(used, a)
		fmt.Fprintf(&out, `<path class="arrow" d="M%d %dV%d"/><path class="head" d="M%d %dl-5 -9h10z"/>`+"\n",
			a.x, a.top, a.bottom-8, a.x, a.bottom)
	}
	out.WriteString("</svg>\n")
	return out.Bytes(), nil
}

// place computes the boxes row by row, and the height of the image.
func place(g *graph) (boxes []box, height int) {
	y := margin
	for row := 0; len(boxes) < len(g.layers); row++ {
		tallest := 0
		first := len(boxes)
		for i, l := range g.layers {
			if l.row != row {
				continue
			}
			b := box{layer: l, lines: fold(l.labels(g.members[i]), int(float64(l.to-l.from-2*padding)/charWidth)),
				top: y}
			b.bottom = y + 2*padding + titleLine + len(b.lines)*nameLine - 10
			tallest = max(tallest, b.bottom)
			boxes = append(boxes, b)
		}
		for i := first; i < len(boxes); i++ {
			boxes[i].bottom = tallest
		}
		y = tallest + gap
	}
	return boxes, y - gap + margin
}

// labels returns the names of packages shown in the box, relative to the layer's folder if the layer has its name.
// The title of the box is the label of the folder's own package.
func (l *layer) labels(members []string) (names []string) {
	for _, path := range members {
		if path != l.name && path != "." {
			names = append(names, strings.TrimPrefix(path, l.name+"/"))
		}
	}
	return names
}

// fold joins words into lines of at most width characters.
func fold(words []string, width int) (lines []string) {
	for _, w := range words {
		if n := len(lines); n > 0 && len(lines[n-1])+2+len(w) <= width {
			lines[n-1] += "  " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}

// arrow is a vertical line between two boxes.
type arrow struct{ x, top, bottom int }

// route finds the position of an arrow: nearest to the middle of the common span of both boxes, outside other boxes
// and at the minimum distance from other arrows.
func route(boxes []box, from, to int, used []arrow) (arrow, error) {
	a, b := boxes[from], boxes[to]
	low, high := max(a.from, b.from)+padding, min(a.to, b.to)-padding
	free := func(x int) bool {
		for _, c := range boxes {
			if c.top > a.top && c.bottom < b.bottom && c.row > a.row && c.row < b.row && x > c.from-8 && x < c.to+8 {
				return false
			}
		}
		return !slices.ContainsFunc(used, func(o arrow) bool {
			return o.top < b.top && a.bottom < o.bottom && max(o.x-x, x-o.x) < apart
		})
	}
	middle := (low + high) / 2
	for d := 0; d <= high-low; d++ {
		for _, x := range []int{middle - d, middle + d} {
			if x >= low && x <= high && free(x) {
				return arrow{x, a.bottom, b.top}, nil
			}
		}
	}
	return arrow{}, fmt.Errorf("no room for an arrow from %s to %s: change the widths in layers.go", a.name, b.name)
}
