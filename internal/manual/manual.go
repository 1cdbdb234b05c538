// Package manual prints the help of commands. Help lists the flags of the program below headings. The flags of an
// owner, such as a backend or format, are a topic: "PROGRAM --help TOPIC" lists them.
package manual

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/docs"
	"github.com/tracedag/tracedag/param"
)

// Group is the options of one owner: a backend, format, pass or generator, or of a program itself.
type Group struct {
	Owner  string   // name on the command line; "" for options of the program
	Title  string   // heading in help, or line of help for a topic
	Topic  bool     // only the owner's own help lists the options
	Names  []string // further names of the topic
	List   string   // heading of the owner's list in the program's help; "" to name it in the last line
	Page   string   // long text of the owner's help; may be ""
	File   string   // page of documentation that help refers to; "" for none
	Doc    string   // reference page that is the owner's help, such as "backends/packet"; "" for none
	Quiet  bool     // lists of topics omit the owner
	Params param.Set

	// Print prints the owner's help after its title, if not nil.
	Print func(w io.Writer)
}

// Widths of help texts in columns.
const (
	DefaultWidth = 80 // for a terminal of unknown width
	leastWidth   = 60
	mostWidth    = 120
)

// Annotations of flags: their heading in help, or their topic.
const (
	sectionAnnotation = "section"
	topicAnnotation   = "topic"
	tableAnnotation   = "table" // the flag is a row of its group's table
)

// allFlags is the topic that lists the flags of the program and of all topics.
const allFlags = "flags"

func annotate(f *pflag.Flag, key, value string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = []string{value}
}

func annotation(f *pflag.Flag, key string) string {
	if values := f.Annotations[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Section places all flags of the command that have neither heading nor topic below a heading.
func Section(cmd *cobra.Command, title string) {
	place(cmd, sectionAnnotation, title)
}

// Topic places all flags of the command that have neither heading nor topic into the topic of the group's owner. Help
// lists the group's Params; Topic does not declare flags for them.
func Topic(cmd *cobra.Command, g Group) {
	g.Topic = true
	place(cmd, topicAnnotation, g.Owner)
	Of(cmd).Add(g)
}

// InTopic places a flag into the topic of an owner.
func InTopic(cmd *cobra.Command, flag, owner string) {
	annotate(cmd.Flags().Lookup(flag), topicAnnotation, owner)
}

func place(cmd *cobra.Command, key, value string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if annotation(f, sectionAnnotation) == "" && annotation(f, topicAnnotation) == "" {
			annotate(f, key, value)
		}
	})
}

// Place places a flag of the group's table into the group's topic, or below a heading; "" is the group's title.
func (g *Group) Place(f *pflag.Flag, heading string) {
	annotate(f, tableAnnotation, "yes")
	if heading == "" {
		heading = g.Title
	}
	switch {
	case g.Topic:
		annotate(f, topicAnnotation, g.Owner)
	case heading != "":
		annotate(f, sectionAnnotation, heading)
	}
}

// InSection reports whether help lists the flag below a heading.
func InSection(f *pflag.Flag, title string) bool {
	return annotation(f, sectionAnnotation) == title
}

// TopicOf returns the topic of a flag that only the help of the topic lists, "" for another flag.
func TopicOf(f *pflag.Flag) string {
	return annotation(f, topicAnnotation)
}

// Manual is the help topics of a command. The context of the command holds it.
type Manual struct {
	cmd    *cobra.Command
	topics []Group
}

type manualKey struct{}

// Of returns the manual of a command.
func Of(cmd *cobra.Command) *Manual {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	m, ok := ctx.Value(manualKey{}).(*Manual)
	if !ok || m.cmd != cmd { // no manual, or that of the parent
		m = &Manual{cmd: cmd}
		cmd.SetContext(context.WithValue(ctx, manualKey{}, m))
	}
	return m
}

// Add adds a group to the topic of its owner. It drops texts that the topic already has.
func (m *Manual) Add(g Group) {
	for i := range m.topics {
		if have := &m.topics[i]; have.Owner == g.Owner && have.Page == g.Page && have.File == g.File {
			g.Page, g.File = "", ""
		}
	}
	m.topics = append(m.topics, g)
}

// names returns the names of the topics that lists of the program's help contain (listed), or of the others.
func (m *Manual) names(listed bool) (names []string) {
	for i := range m.topics {
		if g := &m.topics[i]; !g.Quiet && (g.List != "") == listed && !slices.Contains(names, g.Owner) {
			names = append(names, g.Owner)
		}
	}
	if !listed && len(m.topics) > 0 {
		names = append(names, allFlags)
	}
	return names
}

// owner returns the name of the topic with a name or further name, or else the name itself.
func (m *Manual) owner(name string) string {
	for i := range m.topics {
		if m.topics[i].Owner == name {
			return name
		}
	}
	for i := range m.topics {
		if slices.Contains(m.topics[i].Names, name) {
			return m.topics[i].Owner
		}
	}
	return name
}

// First returns the arguments with "help TOPIC" replaced by "--help TOPIC".
func First(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		return append([]string{"--help"}, args[1:]...)
	}
	return args
}

// Print prints the help of a command to w, or the help of the topic that follows --help in the arguments. The width of
// w is in columns, 0 if unknown. Print returns an error about an unknown topic.
func Print(w io.Writer, width int, cmd *cobra.Command, args []string) error {
	if width == 0 {
		width = DefaultWidth
	}
	m := Of(cmd)
	h := &helpPage{w: w, width: min(max(width, leastWidth), mostWidth)}
	topic := ""
	for i, arg := range args {
		if (arg == "--help" || arg == "-h") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			topic = m.owner(args[i+1])
		}
	}
	switch names := slices.Concat(m.names(true), m.names(false)); {
	case topic != "" && m.page(topic) != "":
		m.printPage(h, topic)
	case topic == "" || topic == cmd.Name():
		m.printMain(h)
	case topic == allFlags && len(m.topics) > 0:
		m.printAll(h)
	case m.has(topic):
		m.printTopic(h, topic)
	case docs.Page(topic) != "":
		h.page(docs.Page(topic), func() {})
	default:
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		if len(names) == 0 { // the argument may be the name of a file
			m.printMain(h)
			return nil
		}
		return fmt.Errorf("--help: no topic %q, expected one of %s%s", topic, strings.Join(names, ", "),
			param.Suggest(topic, m.Topics()))
	}
	return nil
}

// has reports whether there is a topic of a name.
func (m *Manual) has(topic string) bool {
	return slices.ContainsFunc(m.topics, func(g Group) bool { return g.Owner == topic })
}

// Topics returns the names of all topics, listed or not, without duplicates.
func (m *Manual) Topics() (names []string) {
	for i := range m.topics {
		names = append(names, m.topics[i].Owner)
	}
	names = append(names, docs.General()...)
	if len(m.topics) > 0 {
		names = append(names, allFlags)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// page returns the reference page of a topic, "" if it has none.
func (m *Manual) page(topic string) string {
	for i := range m.topics {
		if g := &m.topics[i]; g.Owner == topic && g.Doc != "" {
			if text := docs.Page(g.Doc); text != "" {
				return text
			}
		}
	}
	return ""
}

// printPage prints the reference page of a topic with its flags.
func (m *Manual) printPage(h *helpPage, topic string) {
	var swept []string
	h.page(m.page(topic), func() {
		for i := range m.topics {
			if g := &m.topics[i]; g.Owner == topic && g.Doc != "" {
				h.group(g)
				swept = append(swept, g.Params.Flags().Swept()...)
			}
		}
		m.ownFlags(h, topic)
		h.print()
		if len(swept) > 0 {
			fmt.Fprintln(h.w)
			h.text("Flags that --sweep varies: " + strings.Join(swept, ", "))
		}
	})
}

// ownFlags adds the flags of a topic that no table declares.
func (m *Manual) ownFlags(h *helpPage, topic string) {
	title := "Flags"
	if len(h.lists) > 0 {
		title = "More flags"
	}
	h.flags(title, m.cmd, func(f *pflag.Flag) bool {
		return annotation(f, topicAnnotation) == topic && annotation(f, tableAnnotation) == ""
	})
}

// printMain prints the help of the command.
func (m *Manual) printMain(h *helpPage) {
	cmd := m.cmd
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	text, rest, _ := strings.Cut(text, "\n\n")
	h.text(text)
	fmt.Fprintln(h.w, "\nUsage:")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(h.w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(h.w, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if rest != "" {
		fmt.Fprintln(h.w)
		h.text(rest)
	}
	if cmd.HasAvailableSubCommands() {
		h.commands(cmd)
	}
	m.owners(h)
	h.sections(cmd)
	h.print()
	if cmd.HasExample() {
		fmt.Fprintln(h.w, "\nExamples:")
		for _, line := range codeLines(strings.Split(strings.Trim(cmd.Example, "\n"), "\n"), h.width) {
			fmt.Fprintln(h.w, line)
		}
	}
	if cmd.Name() == "completion" || cmd.Parent() != nil && cmd.Parent().Name() == "completion" {
		return
	}
	fmt.Fprintf(h.w, "\nExit status:\n  %s\n", exitStatus(cmd))
	if names := m.names(false); len(names) > 0 {
		fmt.Fprintln(h.w)
		h.text(fmt.Sprintf("More: %s --help %s", cmd.CommandPath(), strings.Join(names, " | ")))
	}
	if !cmd.HasParent() {
		fmt.Fprintf(h.w, "Shell completion: %s completion bash|zsh|fish|powershell\n", cmd.Name())
	}
}

// exitStatus lists the exit statuses of a command in a line.
func exitStatus(cmd *cobra.Command) string {
	loss := ""
	if cmd.Flags().Lookup("strict") != nil {
		loss = ", 3 loss (--strict)"
	}
	return "0 success, 1 failure, 2 usage" + loss + ", 130 Ctrl-C, 141 closed pipe"
}

// owners prints the lists of owners below their headings.
func (m *Manual) owners(h *helpPage) {
	var lists []string
	for i := range m.topics {
		if list := m.topics[i].List; list != "" && !slices.Contains(lists, list) {
			lists = append(lists, list)
		}
	}
	for _, list := range lists {
		var entries []helpEntry
		for i := range m.topics {
			if g := &m.topics[i]; g.List == list {
				entries = append(entries, helpEntry{"  " + g.Owner, g.Title})
			}
		}
		h.list(list, entries)
		h.print()
	}
}

// printTopic prints the titles, texts and flags of a topic.
func (m *Manual) printTopic(h *helpPage, topic string) {
	first := true
	var files, swept []string
	for i := range m.topics {
		g := &m.topics[i]
		if g.Owner != topic {
			continue
		}
		if first {
			h.text(fmt.Sprintf("%s %s - %s", m.cmd.CommandPath(), g.Owner, g.Title))
		}
		first = false
		if g.Page != "" {
			fmt.Fprintln(h.w)
			h.text(g.Page)
		}
		if g.Print != nil {
			fmt.Fprintln(h.w)
			g.Print(h.w)
		}
		h.group(g)
		swept = append(swept, g.Params.Flags().Swept()...)
		if g.File != "" {
			files = append(files, g.File)
		}
	}
	m.ownFlags(h, topic)
	h.print()
	if len(swept) > 0 {
		fmt.Fprintln(h.w)
		h.text("Flags that --sweep varies: " + strings.Join(swept, ", "))
	}
	if len(files) > 0 {
		fmt.Fprintln(h.w)
		h.text("More: " + strings.Join(files, ", "))
	}
}

// printAll prints the flags of the program and of its topics.
func (m *Manual) printAll(h *helpPage) {
	fmt.Fprintf(h.w, "%s - all flags\n", m.cmd.CommandPath())
	h.sections(m.cmd)
	for _, topic := range slices.Concat(m.names(true), m.names(false)) {
		title := topic
		for i := range m.topics {
			if g := &m.topics[i]; g.Owner == topic {
				title = topic + ": " + g.Title
				break
			}
		}
		h.flags(title, m.cmd, func(f *pflag.Flag) bool { return annotation(f, topicAnnotation) == topic })
	}
	h.print()
}

// helpPage is a page of help. print aligns all lists since the last print.
type helpPage struct {
	w     io.Writer
	width int
	lists []helpList
}

type helpList struct {
	title   string
	entries []helpEntry
}

type helpEntry struct{ name, text string }

// list adds a list unless it is empty.
func (h *helpPage) list(title string, entries []helpEntry) {
	if len(entries) > 0 {
		h.lists = append(h.lists, helpList{title, entries})
	}
}

// print prints the lists in two columns.
func (h *helpPage) print() {
	most, column := h.width*3/8, 0
	for _, list := range h.lists {
		for _, e := range list.entries {
			if len(e.name) <= most {
				column = max(column, len(e.name))
			}
		}
	}
	for _, list := range h.lists {
		fmt.Fprintln(h.w)
		h.text(list.title + ":")
		for _, e := range list.entries {
			name := e.name
			if len(name) > column && e.text != "" {
				fmt.Fprintln(h.w, name)
				name = ""
			}
			for _, line := range wrap(e.text, h.width-column-2) {
				fmt.Fprintln(h.w, strings.TrimRight(fmt.Sprintf("%-*s  %s", column, name, line), " "))
				name = ""
			}
		}
	}
	h.lists = nil
}

// text prints wrapped paragraphs. Lines that begin with a space or tab are not joined.
func (h *helpPage) text(text string) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			for _, line := range wrap(strings.Join(paragraph, " "), h.width) {
				fmt.Fprintln(h.w, line)
			}
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch {
		case line == "" || line[0] == ' ' || line[0] == '\t':
			flush()
			for _, line := range hang(line, h.width) {
				fmt.Fprintln(h.w, line)
			}
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
}

// row is a line of a list in a long text: a name and its description.
var row = regexp.MustCompile(`^( +\S+(?: \S+)*  +)(\S.*)$`)

// hang wraps a long line. The description in a row of a list keeps its column.
func hang(line string, width int) (lines []string) {
	m := row.FindStringSubmatch(line)
	if utf8.RuneCountInString(line) <= width || m == nil || len(m[1]) > width/2 {
		return codeLines([]string{line}, width)
	}
	name := m[1]
	for _, part := range wrap(m[2], width-len(name)) {
		lines = append(lines, name+part)
		name = strings.Repeat(" ", len(name))
	}
	return lines
}

// unbroken is a space at which wrap breaks no line.
const unbroken = "\x00"

// wrap breaks a text at spaces into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	lines = append(lines, line)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], unbroken, " ")
	}
	return lines
}

// commands lists the subcommands by group.
func (h *helpPage) commands(cmd *cobra.Command) {
	list := func(group string) {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group {
				for i, line := range wrap(sub.Short, h.width-17) {
					name := ""
					if i == 0 {
						name = sub.Name()
					}
					fmt.Fprintf(h.w, "  %-14s %s\n", name, line)
				}
			}
		}
	}
	fmt.Fprintf(h.w, "\nCommands (\"%s COMMAND --help\" shows the flags):\n", cmd.CommandPath())
	list("")
	for i, group := range cmd.Groups() {
		if i > 0 {
			fmt.Fprintln(h.w)
		}
		fmt.Fprintf(h.w, " %s\n", group.Title)
		list(group.ID)
	}
}

// sections adds the flags below their headings, then the flags of all commands.
func (h *helpPage) sections(cmd *cobra.Command) {
	var titles []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if title := annotation(f, sectionAnnotation); title != "" && !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
	})
	for _, title := range titles {
		h.flags(title, cmd, func(f *pflag.Flag) bool { return InSection(f, title) })
	}
	title := "Flags of all commands"
	if len(titles) == 0 {
		title = "Flags"
	}
	h.flags(title, cmd, func(f *pflag.Flag) bool { return InSection(f, "") && annotation(f, topicAnnotation) == "" })
}

// flags adds a list of the selected flags of the command, including inherited flags.
func (h *helpPage) flags(title string, cmd *cobra.Command, selected func(*pflag.Flag) bool) {
	var entries []helpEntry
	add := func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" && selected(f) {
			entries = append(entries, flagEntry(f))
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	h.list(title, entries)
}

// flagEntry describes a flag.
func flagEntry(f *pflag.Flag) helpEntry {
	kind, usage := pflag.UnquoteUsage(f)
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	if kind != "" {
		name += " " + param.Placeholder(kind)
	}
	return helpEntry{name, withDefault(usage, f.DefValue)}
}

// withDefault appends the default to the help of an option, unless it is a zero value or the help states it.
func withDefault(usage, value string) string {
	switch value {
	case "", "0", "0s", "0B", "false", "[]":
		return usage
	}
	if strings.Contains(usage, "(default") {
		return usage
	}
	return usage + " (default" + unbroken + value + ")"
}

// group adds the options of a table below their headings.
func (h *helpPage) group(g *Group) {
	for _, section := range g.Params.Sections() {
		var entries []helpEntry
		for _, p := range section.Params {
			name := "      " + p.Signature()
			switch {
			case p.Letter != "":
				name = "  -" + p.Letter + ", " + p.Signature()
			case p.Key:
				name = "  " + p.Signature()
			}
			entries = append(entries, helpEntry{name, withDefault(p.Usage(), p.Initial)})
		}
		title := section.Heading
		if title == "" {
			title = "Flags"
		}
		h.list(title, entries)
	}
}
