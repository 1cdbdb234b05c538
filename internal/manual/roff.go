// This file formats help and reference pages as man pages.

package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManPage is a page of section 1 in the language of troff's man macros.
type ManPage struct {
	Name string // without the section, such as "simulate-packet"
	Text string
}

// ManPages returns the man pages of a program: one for its command, one per subcommand, and one per topic with a
// reference page for whose name, such as "backends/packet", selected is true. The text has no date.
func ManPages(root *cobra.Command, selected func(doc string) bool) (pages []ManPage) {
	m := Of(root)
	pages = append(pages, ManPage{root.Name(), m.man(root)})
	var names []string
	for _, sub := range root.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "completion" || sub.Name() == "help" {
			continue
		}
		own := Of(sub)
		name := root.Name() + "-" + sub.Name()
		names = append(names, name)
		if text := own.page(sub.Name()); text != "" {
			pages = append(pages, ManPage{name, own.manTopic(name, sub.Name(), sub)})
			continue
		}
		pages = append(pages, ManPage{name, own.man(sub)})
	}
	for i := range m.topics {
		g := &m.topics[i]
		name := root.Name() + "-" + g.Owner
		if g.Doc == "" || m.page(g.Owner) == "" || !selected(g.Doc) || slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		pages = append(pages, ManPage{name, m.manTopic(name, g.Owner, root)})
	}
	return pages
}

// roff is a page in progress.
type roff struct{ strings.Builder }

// escape returns a text for troff.
func escape(text string) string {
	text = strings.ReplaceAll(text, unbroken, " ")
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// quote returns an argument of a macro.
func quote(text string) string {
	return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"`
}

func (r *roff) macro(name, argument string) {
	if argument != "" {
		name += " " + argument
	}
	r.WriteString("." + name + "\n")
}

func (r *roff) line(text string) { r.WriteString(escape(text) + "\n") }

// title begins a page.
func (r *roff) title(name, short string) {
	fmt.Fprintf(r, ".TH %s 1 \"\" tracedag \"User Commands\"\n", quote(strings.ToUpper(name)))
	r.macro("SH", "NAME")
	fmt.Fprintf(r, "%s \\- %s\n", escape(name), escape(short))
}

// verbatim prints lines without filling.
func (r *roff) verbatim(lines []string) {
	r.macro("PP", "")
	r.macro("nf", "")
	for _, line := range lines {
		r.line(strings.ReplaceAll(line, "\t", "  "))
	}
	r.macro("fi", "")
}

// text prints paragraphs; paragraphs with indented lines are verbatim.
func (r *roff) text(text string) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(part, " ") || strings.Contains(part, "\n ") {
			r.verbatim(strings.Split(part, "\n"))
			continue
		}
		r.macro("PP", "")
		r.line(strings.Join(strings.Fields(part), " "))
	}
}

// lists prints lists of options below headings.
func (r *roff) lists(lists []helpList, macro string) {
	for _, list := range lists {
		r.macro(macro, quote(list.title))
		for _, e := range list.entries {
			r.macro("TP", "")
			r.macro("B", quote(strings.TrimSpace(e.name)))
			r.line(e.text)
		}
	}
}

// man returns the page of a command.
func (m *Manual) man(cmd *cobra.Command) string {
	r := &roff{}
	r.title(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), cmd.Short)
	r.macro("SH", "SYNOPSIS")
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND [flags]"
	}
	r.macro("B", quote(use))
	r.macro("SH", "DESCRIPTION")
	r.text(cmd.Long)
	if cmd.HasAvailableSubCommands() {
		r.macro("SH", "COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				r.macro("TP", "")
				r.macro("B", quote(sub.Name()))
				r.line(sub.Short)
			}
		}
	}
	h := &helpPage{width: mostWidth}
	h.sections(cmd)
	r.macro("SH", "OPTIONS")
	r.lists(h.lists, "SS")
	h.lists = nil
	for _, topic := range slices.Concat(m.names(true), m.names(false)) {
		h.flags(topic, cmd, func(f *pflag.Flag) bool { return annotation(f, topicAnnotation) == topic })
	}
	if len(h.lists) > 0 {
		r.macro("SH", quote("OPTIONS OF BACKENDS, FORMATS AND PASSES"))
		r.lists(h.lists, "SS")
	}
	if cmd.HasExample() {
		r.macro("SH", "EXAMPLES")
		r.verbatim(strings.Split(strings.Trim(cmd.Example, "\n"), "\n"))
	}
	r.macro("SH", quote("EXIT STATUS"))
	r.line(exitStatus(cmd))
	return r.String()
}

// manTopic returns the man page of a topic or subcommand from its reference page.
func (m *Manual) manTopic(name, topic string, cmd *cobra.Command) string {
	r := &roff{}
	short := topic
	for i := range m.topics {
		if g := &m.topics[i]; g.Owner == topic && g.Doc != "" {
			short = g.Title
			break
		}
	}
	r.title(name, short)
	r.macro("SH", "DESCRIPTION")
	flags := func() {
		h := &helpPage{width: mostWidth}
		for i := range m.topics {
			if g := &m.topics[i]; g.Owner == topic && g.Doc != "" {
				h.group(g)
			}
		}
		m.ownFlags(h, topic)
		r.lists(h.lists, "SS")
	}
	written := false
	for i, b := range parsePage(m.page(topic)) {
		switch b.kind {
		case heading:
			switch {
			case i == 0: // the title
			case b.level <= 2:
				r.macro("SH", quote(strings.ToUpper(b.text)))
			default:
				r.macro("SS", quote(b.text))
			}
		case paragraph:
			r.macro("PP", "")
			r.line(b.text)
		case item:
			r.macro("IP", quote(b.mark)+" 4")
			r.line(b.text)
		case code:
			r.verbatim(b.lines)
		case table:
			r.verbatim(tableLines(b.rows, DefaultWidth-8))
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
	r.macro("SH", quote("SEE ALSO"))
	r.macro("BR", cmd.Root().Name()+" (1)")
	return r.String()
}
