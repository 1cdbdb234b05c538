package report

import (
	"strings"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/bidi"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// visual returns a text in the order from left to right in which its characters appear.
func visual(txt string) string {
	var p bidi.Paragraph
	if _, err := p.SetString(txt); err != nil {
		return txt
	}
	order, err := p.Order()
	if err != nil || order.NumRuns() == 0 {
		return txt
	}
	var b strings.Builder
	for i := range order.NumRuns() {
		run := order.Run(i)
		if run.Direction() == bidi.RightToLeft {
			b.WriteString(bidi.ReverseString(run.String()))
		} else {
			b.WriteString(run.String())
		}
	}
	return b.String()
}

// outline fills the outlines of the characters of a text.
func (c *textCanvas) outline(face font.Face, at vg.Point, txt string) {
	var buffer sfnt.Buffer
	em := fixed.Int26_6(face.Face.UnitsPerEm())
	scale := face.Font.Size / vg.Length(em)
	x := at.X
	for _, r := range txt {
		glyph, err := face.Face.GlyphIndex(&buffer, r)
		if err != nil {
			return
		}
		segments, err := face.Face.LoadGlyph(&buffer, glyph, em, nil)
		if err != nil {
			return
		}
		place := func(p fixed.Point26_6) vg.Point {
			return vg.Point{X: x + vg.Length(p.X)*scale, Y: at.Y - vg.Length(p.Y)*scale}
		}
		var path vg.Path
		for _, s := range segments {
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				if path != nil {
					path.Close()
				}
				path.Move(place(s.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(place(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(place(s.Args[0]), place(s.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(place(s.Args[0]), place(s.Args[1]), place(s.Args[2]))
			}
		}
		if path != nil {
			path.Close()
			c.Fill(path)
		}
		advance, err := face.Face.GlyphAdvance(&buffer, glyph, em, 0)
		if err != nil {
			return
		}
		x += vg.Length(advance) * scale
	}
}
