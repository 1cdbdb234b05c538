// This file parses reference pages in Markdown and prints them on a terminal.

package manual

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kinds of blocks.
type blockKind int

const (
	paragraph blockKind = iota
	heading             // level is 1 to 6
	item                // of a list, level columns to the right; mark precedes it
	code
	table
	options // the place of the flags
)

// block is a part of a page.
type block struct {
	kind  blockKind
	level int
	mark  string
	text  string     // of paragraphs, headings and items: one line
	lines []string   // of code
	rows  [][]string // of a table, the heading first
}

var (
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	listItem    = regexp.MustCompile(`^( *)([-*]|\d+\.) +(.*)$`)
	headingLine = regexp.MustCompile(`^(#+) +(.*)$`)
	ruleCell    = regexp.MustCompile(`^:?-+:?$`)
)

// startOptions and endOptions enclose the generated tables of options of a page.
var (
	startOptions = regexp.MustCompile(`^<!-- (flags|keys|options)\b`)
	endOptions   = regexp.MustCompile(`^<!-- end of (flags|keys|options)\b`)
)

// parsePage returns the blocks of a page. It supports headings, paragraphs, lists, tables, code and quotations.
func parsePage(text string) (blocks []block) {
	lines := strings.Split(text, "\n")
	inOptions, fresh := false, true
	last := func(kinds ...blockKind) *block {
		if n := len(blocks); !fresh && n > 0 {
			for _, k := range kinds {
				if blocks[n-1].kind == k {
					return &blocks[n-1]
				}
			}
		}
		return nil
	}
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \r")
		bare := strings.TrimSpace(line)
		switch {
		case startOptions.MatchString(bare):
			inOptions = true
			blocks = append(blocks, block{kind: options})
			continue
		case endOptions.MatchString(bare):
			inOptions, fresh = false, true
			continue
		case inOptions:
			continue
		case strings.HasPrefix(bare, "<!--"):
			for !strings.Contains(lines[i], "-->") && i+1 < len(lines) {
				i++
			}
			continue
		case strings.HasPrefix(bare, "```"):
			b := block{kind: code}
			indent := len(line) - len(strings.TrimLeft(line, " "))
			for i++; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), "```"); i++ {
				l := lines[i]
				b.lines = append(b.lines, l[min(indent, len(l)-len(strings.TrimLeft(l, " "))):])
			}
			blocks = append(blocks, b)
			fresh = true
			continue
		case bare == "":
			fresh = true
			continue
		case strings.HasPrefix(line, "    ") && last(paragraph, item) == nil && !continues(blocks, line):
			b := last(code)
			if b == nil {
				blocks = append(blocks, block{kind: code})
				b = &blocks[len(blocks)-1]
			}
			b.lines = append(b.lines, line[4:])
			for i+1 < len(lines) && (strings.HasPrefix(lines[i+1], "    ") ||
				strings.TrimSpace(lines[i+1]) == "" && i+2 < len(lines) && strings.HasPrefix(lines[i+2], "    ")) {
				i++
				b.lines = append(b.lines, strings.TrimPrefix(lines[i], "    "))
			}
			fresh = true
			continue
		case headingLine.MatchString(line):
			m := headingLine.FindStringSubmatch(line)
			blocks = append(blocks, block{kind: heading, level: len(m[1]), text: inline(m[2])})
			fresh = true
			continue
		case strings.HasPrefix(bare, "|"):
			b := last(table)
			if b == nil {
				blocks = append(blocks, block{kind: table})
				b = &blocks[len(blocks)-1]
			}
			if row := cells(bare); row != nil {
				b.rows = append(b.rows, row)
			}
		case listItem.MatchString(line):
			m := listItem.FindStringSubmatch(line)
			mark := m[2]
			if mark == "*" {
				mark = "-"
			}
			blocks = append(blocks, block{kind: item, level: len(m[1]), mark: mark, text: m[3]})
		default:
			bare = strings.TrimSpace(strings.TrimPrefix(bare, ">"))
			if b := last(paragraph, item); b != nil {
				b.text += " " + bare
			} else {
				indent := len(line) - len(strings.TrimLeft(line, " "))
				blocks = append(blocks, block{kind: paragraph, level: indent, text: bare})
			}
		}
		fresh = false
	}
	for i := range blocks {
		if b := &blocks[i]; b.kind == paragraph || b.kind == item {
			b.text = inline(comment.ReplaceAllString(b.text, ""))
		}
	}
	return blocks
}

// continues reports whether an indented line belongs to the list item before it.
func continues(blocks []block, line string) bool {
	n := len(blocks)
	return n > 0 && blocks[n-1].kind == item && len(line)-len(strings.TrimLeft(line, " ")) < blocks[n-1].level+6
}

// cells returns the cells of a table row, nil for the rule below the heading.
func cells(line string) (row []string) {
	line = strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x01")
	rule := true
	for cell := range strings.SplitSeq(line, "|") {
		cell = strings.TrimSpace(cell)
		rule = rule && ruleCell.MatchString(cell)
		row = append(row, strings.ReplaceAll(inline(cell), "\x01", "|"))
	}
	if rule {
		return nil
	}
	return row
}

var (
	codeSpan  = regexp.MustCompile("`([^`]*)`")
	imageLink = regexp.MustCompile(`!\[([^\]]*)\]\([^)]*\)`)
	textLink  = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
	strong    = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	emphasis  = regexp.MustCompile(`(^|[\s(])\*([^*\s][^*]*)\*`)
	tag       = regexp.MustCompile(`</?[a-z]+/?>`)
)

// inline removes Markdown markup from a text. A link becomes its text, followed by the name of its page.
func inline(text string) string {
	var spans []string
	text = codeSpan.ReplaceAllStringFunc(text, func(span string) string {
		spans = append(spans, span[1:len(span)-1])
		return fmt.Sprintf("\x02%d\x03", len(spans)-1)
	})
	text = imageLink.ReplaceAllString(text, "[$1]")
	text = textLink.ReplaceAllStringFunc(text, func(link string) string {
		m := textLink.FindStringSubmatch(link)
		file, _, _ := strings.Cut(m[2], "#")
		name := strings.TrimSuffix(path.Base(file), ".md")
		if file == "" || !strings.HasSuffix(file, ".md") || strings.Contains(strings.ToLower(m[1]), name) {
			return m[1]
		}
		return m[1] + " (" + name + ".md)"
	})
	text = strong.ReplaceAllString(text, "$1")
	text = emphasis.ReplaceAllString(text, "$1$2")
	text = strings.NewReplacer("<sup>", "^", "<sub>", "_", "<br>", " ").Replace(text)
	text = tag.ReplaceAllString(text, "")
	text = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", `\_`, "_", `\*`, "*").Replace(text)
	for i, span := range spans {
		text = strings.Replace(text, fmt.Sprintf("\x02%d\x03", i), span, 1)
	}
	return text
}

// page prints the blocks of a page. flags prints the options in place of their table, or at the end of a page without a
// table.
func (h *helpPage) page(text string, flags func()) {
	written, last := false, heading
	for _, b := range parsePage(text) {
		before := last
		last = b.kind
		switch b.kind {
		case heading:
			title := b.text
			if b.level == 2 {
				title = strings.ToUpper(title)
			}
			if b.level > 1 {
				fmt.Fprintln(h.w)
			}
			fmt.Fprintln(h.w, title)
		case paragraph:
			fmt.Fprintln(h.w)
			indent := strings.Repeat(" ", b.level)
			for _, line := range wrap(b.text, h.width-b.level) {
				fmt.Fprintln(h.w, indent+line)
			}
		case item:
			if before != item {
				fmt.Fprintln(h.w)
			}
			first := strings.Repeat(" ", b.level) + "  " + b.mark + " "
			for _, line := range wrap(b.text, h.width-len(first)) {
				fmt.Fprintln(h.w, first+line)
				first = strings.Repeat(" ", len(first))
			}
		case code:
			fmt.Fprintln(h.w)
			for _, line := range codeLines(b.lines, h.width-4) {
				fmt.Fprintln(h.w, strings.TrimRight("    "+line, " "))
			}
		case table:
			fmt.Fprintln(h.w)
			for _, line := range tableLines(b.rows, h.width) {
				fmt.Fprintln(h.w, line)
			}
		case options:
			if !written {
				flags()
			}
			written = true
		}
	}
	if !written {
		flags()
	}
}

// codeLines fits lines of code into a width. It continues long commands on further lines and shortens long lines of
// output.
func codeLines(lines []string, width int) (fit []string) {
	session := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "$ ") })
	continued := false
	for _, line := range lines {
		line = strings.ReplaceAll(line, "\t", "  ")
		command := !session || continued || strings.HasPrefix(line, "$ ")
		continued = command && strings.HasSuffix(line, "\\")
		if utf8.RuneCountInString(line) <= width {
			fit = append(fit, line)
			continue
		}
		if !command {
			fit = append(fit, clip(line, width))
			continue
		}
		indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))
		parts := wrap(line, width-len(indent)-4)
		for i, part := range parts {
			if i > 0 {
				part = "  " + part
			}
			if i+1 < len(parts) {
				part += " \\"
			}
			fit = append(fit, fold(indent+part, width)...)
		}
	}
	return fit
}

// fold breaks a line without spaces after commas, or anywhere without commas.
func fold(line string, width int) (lines []string) {
	for runes := []rune(line); ; {
		if len(runes) <= width {
			return append(lines, string(runes))
		}
		at := width
		for at > width/2 && runes[at-1] != ',' {
			at--
		}
		if runes[at-1] != ',' {
			at = width
		}
		lines = append(lines, string(runes[:at]))
		runes = append([]rune("  "), runes[at:]...)
	}
}

// clip shortens a long line and ends it with "...".
func clip(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-3]) + "..."
}

// Table returns the lines of a table with a heading for a terminal of a width in columns, 0 if unknown.
func Table(rows [][]string, width int) []string {
	if width == 0 {
		width = DefaultWidth
	}
	return tableLines(rows, min(max(width, leastWidth), mostWidth))
}

// tableLines returns the lines of a table that fits a width. It narrows the widest columns and wraps their cells.
func tableLines(rows [][]string, width int) (lines []string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	const gap = 2
	for {
		total, widest := -gap, 0
		for i, w := range widths {
			total += w + gap
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= 4 {
			break
		}
		widths[widest]--
	}
	write := func(row []string) {
		var columns [][]string
		height := 1
		for i, cell := range row {
			wrapped := wrapHard(cell, widths[i])
			columns = append(columns, wrapped)
			height = max(height, len(wrapped))
		}
		for k := range height {
			var b strings.Builder
			for i, column := range columns {
				cell := ""
				if k < len(column) {
					cell = column[k]
				}
				b.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))+gap))
			}
			lines = append(lines, strings.TrimRight(b.String(), " "))
		}
	}
	for i, row := range rows {
		write(row)
		if i == 0 && strings.Join(row, "") != "" {
			var rule []string
			for k := range row {
				rule = append(rule, strings.Repeat("-", widths[k]))
			}
			write(rule)
		}
	}
	if len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	return lines
}

// wrapHard is [wrap], but also breaks long words.
func wrapHard(text string, width int) []string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		for runes := []rune(word); ; runes = runes[width:] {
			if len(runes) <= width {
				words = append(words, string(runes))
				break
			}
			words = append(words, string(runes[:width]))
		}
	}
	return wrap(strings.Join(words, " "), width)
}
