package report

import (
	"crypto/sha256"
	_ "embed" // the style sheet and the script
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// manual is the address of the page of the documentation that describes pages. It has the anchors of all
// sections.
const manual = "https://github.com/tracedag/tracedag/blob/main/docs/reference/report.md"

// page is a page that is written section by section.
type page struct {
	root     value
	title    string
	head     strings.Builder // above the contents
	body     strings.Builder
	contents []struct{ anchor, heading string }
	figures  int
	lanes    *timelineOf // nil: none
}

// escape returns a text for HTML. Control characters become U+FFFD.
func escape(s string) string {
	return html.EscapeString(clean(s))
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// short returns at most n characters of a text.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// numberOf returns a number as text and its exact form with the unit.
func numberOf(v value, u unit) (text, exact string) {
	if !v.isNumber() {
		return "–", ""
	}
	exact = fmt.Sprint(v.of)
	if u != plain && u != percent {
		exact += " " + scales[u][0].name
	}
	return u.format(v.number()), exact
}

// show returns a value of the document as HTML.
func show(v value, u unit) string {
	switch of := v.of.(type) {
	case string:
		return showText(v, of)
	case bool:
		text := "no"
		if of {
			text = "yes"
		}
		return fmt.Sprintf(`<span data-from="%s">%s</span>`, escape(v.pointer), text)
	case map[string]any, []any:
		return ""
	}
	text, exact := numberOf(v, u)
	from := ""
	if v.known {
		from = fmt.Sprintf(` data-from="%s"`, escape(v.pointer))
	}
	if exact != "" && exact != text {
		from += fmt.Sprintf(` title="%s"`, escape(exact))
	}
	return fmt.Sprintf("<span%s>%s</span>", from, text)
}

// showText returns a text of the document as HTML, isolated from the direction of the text around it.
func showText(v value, of string) string {
	from := ""
	if text := clean(of); v.known && text == of && strings.TrimSpace(text) == text && text != "" &&
		!strings.ContainsAny(text, "\u00a0\u202f\u2009\u2212\ufeff\u2028\u2029") {
		from = fmt.Sprintf(` data-from="%s"`, escape(v.pointer))
	}
	return fmt.Sprintf("<bdi%s>%s</bdi>", from, escape(of))
}

// sentence is a text with values, as HTML and as plain text.
type sentence struct{ html, plain strings.Builder }

func (s *sentence) add(text string) *sentence {
	s.html.WriteString(escape(text))
	s.plain.WriteString(clean(text))
	return s
}

func (s *sentence) show(v value, u unit) *sentence {
	s.html.WriteString(show(v, u))
	if of, is := v.of.(string); is {
		s.plain.WriteString(clean(short(of, 100)))
	} else {
		text, _ := numberOf(v, u)
		s.plain.WriteString(text)
	}
	return s
}

// section begins a section. Its anchor is a stable name for links.
func (p *page) section(anchor, heading string, says *sentence) {
	p.contents = append(p.contents, struct{ anchor, heading string }{anchor, heading})
	fmt.Fprintf(&p.body, "<section id=\"%s\">\n<h2>%s</h2>\n", anchor, heading)
	text := ""
	if says != nil {
		text = says.html.String() + " "
	}
	fmt.Fprintf(&p.body, `<p>%s<a class="manual" href="%s#%s" rel="noreferrer">docs/reference/report.md#%[3]s</a></p>`+
		"\n", text, manual, anchor)
}

func (p *page) endSection() { p.body.WriteString("</section>\n") }

// table is a table of values.
type table struct {
	caption  string
	headings []string
	rows     [][]string // HTML
}

func (t *table) write(w *strings.Builder) {
	t.writeIn(w, `<div class="scroll">`)
}

// writeOpen writes a table that readers scroll without unfolding it first: it is a stop of the Tab key.
func (t *table) writeOpen(w *strings.Builder) {
	t.writeIn(w, fmt.Sprintf(`<div class="scroll" tabindex="0" role="group" aria-label="%s">`, escape(t.caption)))
}

func (t *table) writeIn(w *strings.Builder, frame string) {
	fmt.Fprintf(w, "%s<table>", frame)
	fmt.Fprintf(w, "<caption>%s</caption><thead><tr>", escape(t.caption))
	for _, h := range t.headings {
		fmt.Fprintf(w, `<th scope="col">%s</th>`, escape(h))
	}
	w.WriteString("</tr></thead><tbody>\n")
	for _, row := range t.rows {
		w.WriteString("<tr>")
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(w, `<th scope="row">%s</th>`, cell)
			} else {
				fmt.Fprintf(w, "<td>%s</td>", cell)
			}
		}
		w.WriteString("</tr>\n")
	}
	w.WriteString("</tbody></table></div>")
}

// folded writes a table that is closed at first. Paper shows it if it is short.
func (p *page) folded(summary string, t *table) {
	class := ""
	if len(t.rows) <= 50 {
		class = ` class="short"`
	}
	fmt.Fprintf(&p.body, "<details%s><summary>%s</summary>\n", class, escape(summary))
	t.write(&p.body)
	p.body.WriteString("</details>\n")
}

// columnsOf returns a table of the document with the members "columns" and "rows".
func columnsOf(v value, caption string) *table {
	t := &table{caption: caption}
	var units []unit
	for _, c := range v.get("columns").all() {
		t.headings, units = append(t.headings, heading(c.text())), append(units, unitOf(c.text()))
	}
	for _, row := range v.get("rows").all() {
		var cells []string
		for i := range min(row.len(), len(units)) {
			cells = append(cells, show(row.at(i), units[i]))
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

// objectsOf returns a table of a list of objects with the given members.
func objectsOf(list []value, caption string, members ...string) *table {
	t := &table{caption: caption}
	for _, name := range members {
		t.headings = append(t.headings, heading(name))
	}
	for _, v := range list {
		var cells []string
		for _, name := range members {
			cells = append(cells, show(v.get(name), unitOf(name)))
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

// figure writes a figure: a caption, a picture whose name is the sentence, and its values as a table.
func (p *page) figure(caption string, says *sentence, svg *drawing, values *table) {
	p.figures++
	name := says.plain.String()
	fmt.Fprintf(&p.body, "<figure id=\"figure-%d\"><figcaption>%s</figcaption>\n", p.figures, escape(caption))
	fmt.Fprintf(&p.body, `<div class="frame" tabindex="0" role="group" aria-label="%s">`, escape(caption))
	fmt.Fprintf(&p.body, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n<title>%s</title>\n", width,
		svg.height, escape(name), escape(name))
	p.body.WriteString(svg.marks.String())
	p.body.WriteString("</svg></div>\n")
	p.body.WriteString(svg.legend())
	p.folded("Values", values)
	p.body.WriteString("</figure>\n")
}

// writeTo writes the page.
func (p *page) writeTo(w io.Writer, r *Report) error {
	sum := sha256.Sum256([]byte(script))
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; `+
		`script-src 'sha256-%s'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
%s</style>
</head>
<body>
%s<main>
`, base64.StdEncoding.EncodeToString(sum[:]), escape(short(p.title, 120)), style, patterns())
	b.WriteString(p.head.String())
	if len(p.contents) > 0 {
		b.WriteString("<nav aria-label=\"Contents\"><ul>\n")
		for _, c := range p.contents {
			fmt.Fprintf(&b, "<li><a href=\"#%s\">%s</a></li>\n", c.anchor, c.heading)
		}
		b.WriteString("</ul></nav>\n")
	}
	b.WriteString(p.body.String())
	b.WriteString("<footer>\n<p>Rounded numbers have their exact value as a tooltip. The result is in this file as " +
		"JSON: the element with the id “result”.</p>\n")
	if len(r.omitted) > 0 {
		names := make([]string, len(r.omitted))
		for i, name := range r.omitted {
			names[i] = escape(name)
		}
		fmt.Fprintf(&b, "<p>Too long for this file; <code>--json</code> has them: %s.</p>\n", strings.Join(names, ", "))
	}
	b.WriteString(keys)
	b.WriteString("</footer>\n</main>\n<script type=\"application/json\" id=\"result\">")
	b.WriteString(strings.ReplaceAll(string(r.page), "<", `\u003c`))
	b.WriteString("</script>\n" + p.lanes.dataOf())
	fmt.Fprintf(&b, "<script>%s</script>\n</body>\n</html>\n", script)
	_, err := io.WriteString(w, b.String())
	return err
}

// keys lists the keys of figures.
const keys = `<details id="keys" class="screen"><summary>Keys of figures</summary>
<p>Tab moves from figure to figure. <kbd>+</kbd> and <kbd>-</kbd> zoom, <kbd>0</kbd> shows all, arrows pan,
<kbd>Enter</kbd> opens the table of values, <kbd>?</kbd> this list.</p>
<p>In a traffic matrix, arrows select a cell and show its value.</p>
<p>In the timeline, <kbd>n</kbd> and <kbd>p</kbd> select the next and the previous slice of a lane, and <kbd>w</kbd> the
next of the longest waits; <kbd>Enter</kbd> zooms to the selected slice, and a selected message has an arrow to its
receiver. <kbd>[</kbd> and <kbd>]</kbd> show fewer and more ranks, <kbd>c</kbd> shows and hides the critical path.</p>
</details>
`
