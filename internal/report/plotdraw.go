package report

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"strings"
	"sync"
	clock "time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// theme is the colors and the font of a picture.
type theme struct {
	ground, ink, soft, grid color.Color
	fills                   [9]color.Color // also of lines
	levels                  [levels]color.Color
	text, small, large      text.Style
}

// The colors are those of pages: after Okabe and Ito (2008), which the color-blind can tell apart, in lightness that
// differs from the ground by 3:1 or more.
var (
	lightFills  = [9]uint32{0x0072b2, 0xc44e00, 0x00795a, 0xa8508a, 0xa66f00, 0x6b6b00, 0x767676, 0x1a1a1a, 0x56b4e9}
	darkFills   = [9]uint32{0x56b4e9, 0xf0783c, 0x2fc497, 0xdd8fc0, 0xe69f00, 0xd8cf45, 0x9a9a9a, 0xeeeeee, 0x0072b2}
	lightLevels = [levels]uint32{0xd4e4f4, 0xb1cfe9, 0x8bb8de, 0x639fd0, 0x3f85bf, 0x236aa8, 0x0f4f8a, 0x06356a}
	darkLevels  = [levels]uint32{0x123456, 0x1a4672, 0x235a90, 0x3272b0, 0x4a8ccb, 0x6ea8de, 0x9ac5ec, 0xcfe5f9}
)

func rgb(x uint32) color.Color { return color.RGBA{byte(x >> 16), byte(x >> 8), byte(x), 255} }

// theme returns the theme that the options select.
func (o *Plots) theme() *theme {
	t := &theme{ground: rgb(0xffffff), ink: rgb(0x1a1a1a), soft: rgb(0x595959), grid: rgb(0xdddddd)}
	fills, shades := lightFills, lightLevels
	if o.Dark {
		t.ground, t.ink, t.soft, t.grid = rgb(0x161616), rgb(0xeeeeee), rgb(0xb5b5b5), rgb(0x383838)
		fills, shades = darkFills, darkLevels
	}
	for i, x := range fills {
		t.fills[i] = rgb(x)
	}
	for i, x := range shades {
		t.levels[i] = rgb(x)
	}
	style := func(scale float64, c color.Color) text.Style {
		variant := strings.ToUpper(o.Font.family[:1]) + o.Font.family[1:]
		return text.Style{Color: c, Handler: plot.DefaultTextHandler, Font: font.Font{Typeface: "Liberation",
			Variant: font.Variant(variant), Size: vg.Length(scale * o.Font.size)}}
	}
	t.text, t.small, t.large = style(1, t.ink), style(0.9, t.soft), style(1.2, t.ink)
	return t
}

// label returns a text for a picture: on one line, without characters that are not visible.
func label(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, clean(s))
	return strings.Join(strings.Fields(s), " ")
}

// fit returns the text, cut to a width.
func fit(s text.Style, txt string, width vg.Length) string {
	txt = short(txt, 400)
	if s.Width(txt) <= width {
		return txt
	}
	all := []rune(txt)
	low, high := 0, len(all)
	for low+1 < high {
		if mid := (low + high) / 2; s.Width(string(all[:mid])+"…") <= width {
			low = mid
		} else {
			high = mid
		}
	}
	return string(all[:low]) + "…"
}

// wrapText breaks a text into at most two lines of a width.
func wrapText(s text.Style, txt string, width vg.Length) []string {
	txt = short(txt, 400)
	if txt == "" || s.Width(txt) <= width {
		return []string{txt}
	}
	end := 0
	for i, r := range txt {
		if r == ' ' && s.Width(txt[:i]) <= width {
			end = i
		}
	}
	if end == 0 {
		return []string{fit(s, txt, width)}
	}
	return []string{txt[:end], fit(s, txt[end+1:], width)}
}

// pdfDates fixes what PDF files contain beside the picture, so that equal pictures are equal files.
var pdfDates = sync.OnceFunc(func() {
	fixed := clock.Date(2000, 1, 1, 0, 0, 0, 0, clock.UTC)
	fpdf.SetDefaultCreationDate(fixed)
	fpdf.SetDefaultModificationDate(fixed)
	fpdf.SetDefaultCatalogSort(true)
})

// dpi is the resolution of png files.
const dpi = 192

// write writes the picture in a format.
func (p *picture) write(w io.Writer, format string, o *Plots) error {
	t := o.theme()
	var out interface {
		vg.Canvas
		io.WriterTo
	}
	switch format {
	case "png":
		image := vgimg.NewWith(vgimg.UseWH(o.Width, o.Height), vgimg.UseDPI(dpi),
			vgimg.UseBackgroundColor(color.Transparent))
		out = vgimg.PngCanvas{Canvas: image}
	case "pdf":
		pdfDates()
		out = vgpdf.New(o.Width, o.Height)
	default:
		out = vgsvg.New(o.Width, o.Height)
	}
	c := draw.NewCanvas(&textCanvas{out, format}, o.Width, o.Height)
	if !o.Transparent {
		c.SetColor(t.ground)
		c.Fill(c.Rectangle.Path())
	}
	p.drawTo(c, t)
	if format != "svg" {
		_, err := out.WriteTo(w)
		return err
	}
	var b bytes.Buffer
	if _, err := out.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(finishSVG(b.Bytes(), p.title))
	return err
}

// finishSVG adds the title as a name, and fonts of the same widths where Liberation's are missing.
func finishSVG(svg []byte, title string) []byte {
	for name, others := range map[string]string{"Sans": "Arial,Helvetica,sans-serif",
		"Serif": "Times New Roman,Times,serif", "Mono": "Courier New,Courier,monospace"} {
		family := "Liberation " + name
		svg = bytes.ReplaceAll(svg, []byte(`"font-family:`+family+`;`), []byte(`"font-family:`+family+`,`+others+`;`))
	}
	if end := bytes.Index(svg, []byte(">\n<g")); title != "" && end >= 0 {
		svg = append(append(append([]byte(nil), svg[:end+2]...), "<title>"+escape(short(title, 400))+"</title>\n"...),
			svg[end+2:]...)
	}
	return svg
}

// drawTo draws the picture.
func (p *picture) drawTo(c draw.Canvas, t *theme) {
	margin := t.text.Font.Size * 0.8
	c = draw.Crop(c, margin, -margin, margin, -margin)
	line := func(s text.Style, txt string) {
		s.XAlign, s.YAlign = draw.XCenter, draw.YTop
		c.FillText(s, vg.Point{X: c.Center().X, Y: c.Max.Y}, txt)
		c.Max.Y -= s.FontExtents().Height
	}
	if p.title != "" {
		for _, txt := range wrapText(t.large, label(p.title), c.Max.X-c.Min.X) {
			line(t.large, txt)
		}
		c.Max.Y -= margin / 3
	}
	if p.note != "" {
		line(t.small, fit(t.small, label(p.note), c.Max.X-c.Min.X))
	}
	c.Max.Y -= p.legend(c, t)
	across := p.across
	if across == 0 {
		across = len(p.panels)
	}
	down := (len(p.panels) + across - 1) / max(across, 1)
	height := (c.Max.Y - c.Min.Y) / vg.Length(max(down, 1))
	for i := range down {
		row := c
		row.Max.Y = c.Max.Y - vg.Length(i)*height
		row.Min.Y = row.Max.Y - height
		if i+1 < down {
			row.Min.Y += margin
		}
		drawRow(row, p.panels[i*across:min(len(p.panels), (i+1)*across)], across, t)
	}
}

// drawRow draws panels beside each other. Their axes begin and end at the same height.
func drawRow(c draw.Canvas, panels []*panel, across int, t *theme) {
	total := 0.0
	for _, p := range panels {
		total += p.wide()
	}
	total += float64(across - len(panels)) // places that are empty
	gap := t.text.Font.Size * 1.5
	if len(panels) == 1 {
		gap = 0
	}
	width := (c.Max.X - c.Min.X - gap*vg.Length(across-1)) / vg.Length(total)
	cells, all := make([]draw.Canvas, len(panels)), make([]*plot.Plot, len(panels))
	low, high := vg.Length(math.Inf(-1)), vg.Length(math.Inf(1))
	x := c.Min.X
	for i, p := range panels {
		cells[i] = c
		cells[i].Min.X = x
		cells[i].Max.X = x + width*vg.Length(p.wide())
		x = cells[i].Max.X + gap
		all[i] = p.plot(cells[i], t)
		data := all[i].DataCanvas(cells[i])
		low, high = max(low, data.Min.Y), min(high, data.Max.Y)
	}
	for i := range panels {
		data := all[i].DataCanvas(cells[i])
		all[i].Draw(draw.Crop(cells[i], 0, 0, low-data.Min.Y, high-data.Max.Y))
	}
}

func (p *panel) wide() float64 {
	if p.weight > 0 {
		return p.weight
	}
	return 1
}

// plot returns the plot of a panel in a part of the picture.
func (p *panel) plot(c draw.Canvas, t *theme) *plot.Plot {
	p.setRanges()
	out := plot.New()
	out.BackgroundColor = nil
	wide, high := c.Max.X-c.Min.X, c.Max.Y-c.Min.Y
	if p.title != "" {
		out.Title.TextStyle = t.text
		out.Title.TextStyle.XAlign, out.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
		out.Title.Text, out.Title.Padding = fit(t.text, label(p.title), wide), 3
	}
	size := t.small.Font.Size
	for _, a := range []struct {
		of   *plotAxis
		axis *plot.Axis
		room vg.Length // for the label
		most int       // ticks
		long int       // characters of a label
	}{
		{&p.x, &out.X, wide, int(wide / (size * 4)), 12}, {&p.y, &out.Y, high, int(high / (size * 1.3)), 24},
	} {
		a.axis.Min, a.axis.Max = a.of.min, a.of.max
		a.axis.Padding, a.axis.Tick.Length = 0, 3
		a.axis.LineStyle.Color, a.axis.Tick.LineStyle.Color = t.soft, t.soft
		a.axis.Label.TextStyle, a.axis.Tick.Label = styled(t.text, a.axis.Label.TextStyle), styled(t.small,
			a.axis.Tick.Label)
		a.axis.Label.Text = strings.Join(wrapText(t.text, label(a.of.label()), a.room), "\n")
		if a.of.names != nil && a.axis == &out.X {
			// Names are shorter if there are more of them.
			a.most = len(a.of.names)
			a.long = int(wide / vg.Length(max(1, len(a.of.names))) / (size * 0.55))
			if a.long < 4 {
				a.long, a.most = 6, int(wide/(size*4))
			}
		}
		if a.axis == &out.Y {
			a.long = max(6, min(24, int(wide/(size*0.55)*0.3)))
		}
		a.axis.Tick.Marker = plot.ConstantTicks(a.of.marked(max(2, a.most), a.long))
		switch {
		case a.of.bare:
			a.axis.LineStyle.Width, a.axis.Tick.Length, a.axis.Label.Text = 0, 0, ""
		case a.of.log:
			a.axis.Scale = scaleLog{}
		case a.of.down:
			a.axis.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
		}
	}
	// Labels are centered on the axes, which are shorter than the part of the picture.
	data := out.DataCanvas(c)
	middle := data.Center()
	out.X.Label.Text = strings.Join(wrapText(t.text, strings.ReplaceAll(out.X.Label.Text, "\n", " "),
		2*min(middle.X-c.Min.X, c.Max.X-middle.X)), "\n")
	out.Y.Label.Text = strings.Join(wrapText(t.text, strings.ReplaceAll(out.Y.Label.Text, "\n", " "),
		2*min(middle.Y-c.Min.Y, c.Max.Y-middle.Y)), "\n")
	out.Add(plotterFunc(func(c draw.Canvas, out *plot.Plot) {
		at := func(x, y float64) vg.Point {
			if p.x.log {
				x = max(x, out.X.Min)
			}
			if p.y.log {
				y = max(y, out.Y.Min)
			}
			return vg.Point{X: c.X(out.X.Norm(x)), Y: c.Y(out.Y.Norm(y))}
		}
		p.lines(c, out, t)
		for _, m := range p.marks {
			m.plot(c, at, t)
		}
	}))
	return out
}

// styled returns a text style with the alignment and rotation of another.
func styled(s, like text.Style) text.Style {
	s.XAlign, s.YAlign, s.Rotation = like.XAlign, like.YAlign, like.Rotation
	return s
}

type plotterFunc func(c draw.Canvas, p *plot.Plot)

func (f plotterFunc) Plot(c draw.Canvas, p *plot.Plot) { f(c, p) }

// lines draws the lines of the grid at the ticks with labels.
func (p *panel) lines(c draw.Canvas, out *plot.Plot, t *theme) {
	style := draw.LineStyle{Color: t.grid, Width: 0.5}
	if p.x.names == nil && !p.x.bare && !p.x.whole {
		for _, tick := range out.X.Tick.Marker.Ticks(out.X.Min, out.X.Max) {
			if x := c.X(out.X.Norm(tick.Value)); tick.Label != "" && c.ContainsX(x) {
				c.StrokeLine2(style, x, c.Min.Y, x, c.Max.Y)
			}
		}
	}
	if p.y.names == nil && !p.y.bare && !p.y.whole {
		for _, tick := range out.Y.Tick.Marker.Ticks(out.Y.Min, out.Y.Max) {
			if y := c.Y(out.Y.Norm(tick.Value)); tick.Label != "" && c.ContainsY(y) {
				c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
			}
		}
	}
}

// plotKey is an entry of the legend.
type plotKey struct {
	name string
	draw func(c draw.Canvas, t *theme) // a sample in a rectangle
}

// legend draws the legend at the top of c and returns its height.
func (p *picture) legend(c draw.Canvas, t *theme) vg.Length {
	if len(p.keys) == 0 {
		return 0
	}
	s := t.small
	s.Color, s.YAlign = t.ink, draw.YCenter
	sample, gap := s.Font.Size*2.4, s.Font.Size*1.2
	line := s.FontExtents().Height * 1.15
	wide := c.Max.X - c.Min.X
	type entry struct {
		name string
		wide vg.Length
	}
	var rows [][]entry
	var row []entry
	used := vg.Length(0)
	for _, key := range p.keys {
		name := fit(s, label(key.name), wide-sample-s.Font.Size)
		e := entry{name, sample + s.Font.Size*0.4 + s.Width(name)}
		if len(row) > 0 && used+gap+e.wide > wide {
			rows, row, used = append(rows, row), nil, 0
		}
		if len(row) > 0 {
			used += gap
		}
		row, used = append(row, e), used+e.wide
	}
	rows = append(rows, row)
	at, y := 0, c.Max.Y
	for _, row := range rows {
		total := gap * vg.Length(len(row)-1)
		for _, e := range row {
			total += e.wide
		}
		x := c.Min.X + (wide-total)/2
		for _, e := range row {
			box := c
			box.Rectangle = vg.Rectangle{Min: vg.Point{X: x, Y: y - line*0.85}, Max: vg.Point{X: x + sample,
				Y: y - line*0.15}}
			p.keys[at].draw(box, t)
			c.FillText(s, vg.Point{X: x + sample + s.Font.Size*0.4, Y: y - line/2}, e.name)
			x += e.wide + gap
			at++
		}
		y -= line
	}
	return line*vg.Length(len(rows)) + s.Font.Size*0.5
}

// textCanvas is a canvas that draws texts in all scripts.
type textCanvas struct {
	vg.Canvas
	format string
}

// FillString draws a text. In svg files it stays text of any script. In pdf files it is text if the encoding of the
// fonts has its characters, and otherwise the outlines of its characters.
func (c *textCanvas) FillString(face font.Face, at vg.Point, txt string) {
	switch c.format {
	case "svg":
		c.Canvas.FillString(face, at, txt)
		return
	case "pdf":
		if encoded, ok := encode(txt); ok {
			c.Canvas.FillString(face, at, encoded)
			return
		}
		c.outline(face, at, visual(txt))
		return
	}
	c.Canvas.FillString(face, at, visual(txt))
}

// encode returns a text in code page 1252, and whether it has all characters.
func encode(txt string) (string, bool) {
	var b []byte
	for _, r := range txt {
		switch {
		case r < 0x80 || r >= 0xa0 && r <= 0xff:
			b = append(b, byte(r))
		case r == '…':
			b = append(b, 0x85)
		case r == '–':
			b = append(b, 0x96)
		default:
			return "", false
		}
	}
	return string(b), true
}
