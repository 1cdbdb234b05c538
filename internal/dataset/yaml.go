package dataset

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	"github.com/tracedag/tracedag/internal/conf"
)

// YAML returns the metadata as dataset.yaml: keys in a fixed order, a line each. Metadata beyond the limits of YAML
// files become JSON, which is YAML, too.
func (m *Metadata) YAML() []byte {
	n := m.node()
	text := appendMap(nil, &n, 0)
	if read, err := conf.Read(text, ""); err == nil && equalNodes(&read, &n) {
		return text
	}
	return appendJSON(nil, &n)
}

// node returns the metadata as a mapping.
func (m *Metadata) node() conf.Node {
	n := conf.Node{Kind: conf.Map}
	for _, k := range keys {
		switch {
		case k.text != nil:
			addText(&n, k.name, *k.text(m))
		case k.texts != nil:
			addList(&n, k.name, textNodes(*k.texts(m)))
		case k.agents != nil:
			addList(&n, k.name, agentNodes(*k.agents(m), k.group))
		default:
			addTags(&n, *k.tags(m))
		}
	}
	traces := conf.Node{Kind: conf.Map}
	for i := range m.Traces {
		add(&traces, m.Traces[i].Name, m.Traces[i].node())
	}
	if len(traces.Members) > 0 {
		add(&n, "traces", traces)
	}
	return n
}

// node returns the metadata of a trace as a mapping.
func (t *TraceMetadata) node() conf.Node {
	n := conf.Node{Kind: conf.Map}
	for _, k := range traceKeys {
		switch {
		case k.text != nil:
			addText(&n, k.name, *k.text(t))
		case k.name == "creator":
			addList(&n, k.name, agentNodes(t.Creators, false))
		default:
			addTags(&n, t.Tags)
		}
	}
	return n
}

// agentNodes returns names, and mappings of agents with more than a name.
func agentNodes(agents []Agent, group bool) (all []conf.Node) {
	for i := range agents {
		n := conf.Node{Kind: conf.Map}
		for _, k := range agentKeys {
			addText(&n, k.name, *k.text(&agents[i]))
		}
		switch {
		case agents[i].Organization && !group:
			addText(&n, "type", "organization")
		case !agents[i].Organization && group:
			addText(&n, "type", "person")
		case len(n.Members) == 1:
			n = n.Members[0].Value
		}
		all = append(all, n)
	}
	return all
}

func textNodes(texts []string) (all []conf.Node) {
	for _, text := range texts {
		all = append(all, conf.Node{Text: text})
	}
	return all
}

func add(n *conf.Node, key string, value conf.Node) {
	n.Members = append(n.Members, conf.Member{Key: key, Value: value})
}

func addText(n *conf.Node, key, text string) {
	if text != "" {
		add(n, key, conf.Node{Text: text})
	}
}

func addList(n *conf.Node, key string, list []conf.Node) {
	if len(list) > 0 {
		add(n, key, conf.Node{Kind: conf.List, List: list})
	}
}

func addTags(n *conf.Node, tags []string) {
	if len(tags) == 0 {
		return
	}
	all := conf.Node{Kind: conf.Map}
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		addText(&all, key, value)
	}
	add(n, "tags", all)
}

// equalNodes reports whether two nodes are equal but for their lines.
func equalNodes(a, b *conf.Node) bool {
	if a.Kind != b.Kind || a.Text != b.Text || len(a.List) != len(b.List) || len(a.Members) != len(b.Members) {
		return a.Kind == conf.Map && b.Kind == conf.Null && len(a.Members) == 0 ||
			b.Kind == conf.Map && a.Kind == conf.Null && len(b.Members) == 0
	}
	for i := range a.List {
		if !equalNodes(&a.List[i], &b.List[i]) {
			return false
		}
	}
	for i := range a.Members {
		if a.Members[i].Key != b.Members[i].Key || !equalNodes(&a.Members[i].Value, &b.Members[i].Value) {
			return false
		}
	}
	return true
}

// appendMap appends the members of a mapping as block YAML, each line after a number of spaces.
func appendMap(b []byte, n *conf.Node, indent int) []byte {
	for i := range n.Members {
		if i > 0 {
			b = appendSpaces(b, indent)
		}
		b = append(b, scalar(n.Members[i].Key)...)
		b = append(b, ':')
		b = appendValue(b, &n.Members[i].Value, indent)
	}
	return b
}

// appendValue appends the value of a member: behind the colon, or on the next lines.
func appendValue(b []byte, n *conf.Node, indent int) []byte {
	switch n.Kind {
	case conf.Map:
		if len(n.Members) == 0 {
			return append(b, " {}\n"...)
		}
		b = append(b, '\n')
		b = appendSpaces(b, indent+2)
		return appendMap(b, n, indent+2)
	case conf.List:
		b = append(b, '\n')
		for i := range n.List {
			b = appendSpaces(b, indent)
			if n.List[i].Kind == conf.Map {
				b = append(b, "- "...)
				b = appendMap(b, &n.List[i], indent+2)
			} else {
				b = append(b, '-')
				b = appendValue(b, &n.List[i], indent)
			}
		}
		return b
	case conf.Bool:
		b = append(append(b, ' '), n.Text...)
		return append(b, '\n')
	}
	if isBlock(n.Text) {
		b = append(b, " |-\n"...)
		for line := range strings.SplitSeq(n.Text, "\n") {
			if line != "" {
				b = append(appendSpaces(b, indent+2), line...)
			}
			b = append(b, '\n')
		}
		return b
	}
	b = append(b, ' ')
	b = append(b, scalar(n.Text)...)
	return append(b, '\n')
}

func appendSpaces(b []byte, n int) []byte {
	return append(b, strings.Repeat(" ", n)...)
}

// isBlock reports whether a text of several lines is the same as a literal block of YAML.
func isBlock(text string) bool {
	if !strings.Contains(text, "\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") ||
		strings.HasSuffix(text, "\n") {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasSuffix(line, " ") || strings.ContainsFunc(line, unprintable) {
			return false
		}
	}
	return true
}

// plainYAML matches texts that YAML 1.1 and 1.2 read as strings without quotes, unless they are words.
var plainYAML = regexp.MustCompile(`^(?:\pL(?:[\pL\pN ._/()+,;=@%~*<>-]|://)*|` + // words, paths, URLs
	`[0-9]+\.[0-9]+\.[0-9]+|` + // versions
	`[0-9]+[KMBT]<n<[0-9]+[KMBT])$`) // categories of sizes

// yamlWord matches the words that YAML 1.1 or 1.2 reads as a truth value, null or a number; e0 is one for the npm
// package yaml.
var yamlWord = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|nan|inf|e[0-9_.+-]*)$`)

// scalar returns a text as a YAML scalar, in double quotes where YAML would misread it.
func scalar(text string) string {
	if plainYAML.MatchString(text) && !yamlWord.MatchString(text) && !strings.HasSuffix(text, " ") {
		return text
	}
	return quoted(text)
}

// quoted returns a text in double quotes with the escapes of JSON, which YAML shares.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a string has an encoding
	}
	encoded := strings.TrimSuffix(b.String(), "\n")
	return escapeInvisible(encoded)
}

// invisible reports whether a character is safer as an escape.
func invisible(r rune) bool {
	return r <= 0xffff && (unprintable(r) || !unicode.IsGraphic(r))
}

// escapeInvisible writes characters that YAML does not allow, and others that nobody sees, as escapes.
func escapeInvisible(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for _, r := range text {
		if !invisible(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[r>>shift&15])
		}
	}
	return b.String()
}

// appendJSON appends a mapping as indented JSON.
func appendJSON(b []byte, n *conf.Node) []byte {
	var buffer bytes.Buffer
	writeJSON(&buffer, n, "\n")
	return append(append(b, buffer.Bytes()...), '\n')
}

func writeJSON(b *bytes.Buffer, n *conf.Node, newline string) {
	inner := newline + "  "
	switch n.Kind {
	case conf.Map:
		b.WriteByte('{')
		for i := range n.Members {
			b.WriteString(separator(i) + inner + quoted(n.Members[i].Key) + ": ")
			writeJSON(b, &n.Members[i].Value, inner)
		}
		b.WriteString(newline + "}")
	case conf.List:
		b.WriteByte('[')
		for i := range n.List {
			b.WriteString(separator(i) + inner)
			writeJSON(b, &n.List[i], inner)
		}
		b.WriteString(newline + "]")
	default:
		b.WriteString(quoted(n.Text))
	}
}

func separator(i int) string {
	if i > 0 {
		return ","
	}
	return ""
}
