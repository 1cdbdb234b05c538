package dataset

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
)

// Lines of a card around text that users write.
const (
	mineBegin = "<!-- mine -->"
	mineEnd   = "<!-- /mine -->"
	mineHint  = "<!-- Text between the next two lines stays when the set is published again. -->"
)

// maxCardRows is the largest number of rows in the table of a card.
const maxCardRows = 200

// Card returns the data set card of a set, README.md: metadata for Hugging Face in YAML, then Markdown. It keeps the
// text between the lines <!-- mine --> and <!-- /mine --> of the old card, byte for byte. An old card without these
// lines is an error, unless it is empty, because its text would be lost. Errors do not name the file.
func Card(s *Set, old []byte) ([]byte, error) {
	mine, err := findMine(old)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	front := s.frontMatter()
	b.Write(appendMap(nil, &front, 0))
	fmt.Fprintf(&b, "---\n\n# %s\n\n%s\n\n", markdownLine(s.Meta.Title), markdownProse(s.Meta.Description))
	fmt.Fprintf(&b, "%s\n%s\n%s%s\n\n", mineHint, mineBegin, mine, mineEnd)
	s.writeTable(&b)
	b.WriteString(cardUse)
	s.writeTerms(&b)
	return b.Bytes(), nil
}

const cardUse = `
## Use

A trace is a Parquet file, one row per op. catalogue.parquet has one row per trace, SHA256SUMS the
digests of all files, croissant.json the description of the columns.

    duckdb -c "SELECT * FROM 'catalogue.parquet'"
    duckdb -c "SELECT trace, kind, count(*) FROM read_parquet(` +
	`'traces/**/*.parquet', hive_partitioning = true) GROUP BY ALL"
    sha256sum -c SHA256SUMS
`

// findMine returns the lines between the marks of a card.
func findMine(old []byte) ([]byte, error) {
	if len(bytes.TrimSpace(old)) == 0 {
		return nil, nil
	}
	var mine []byte
	inside, found, line := false, false, 0
	for text := range bytes.Lines(old) {
		line++
		switch mark := string(bytes.TrimRight(text, " \t\r\n")); {
		case mark == mineBegin && !found, mark == mineEnd && inside:
			inside, found = !inside, true
		case mark == mineBegin, mark == mineEnd:
			return nil, fmt.Errorf("line %d: expected one line %s and after it one line %s, found another %s; "+
				"remove it", line, mineBegin, mineEnd, mark)
		case inside:
			mine = append(mine, text...)
		}
	}
	switch {
	case inside:
		return nil, fmt.Errorf("line %d: expected a line %s, found the end of the file; add the line", line, mineEnd)
	case !found:
		return nil, fmt.Errorf("expected a line %s and a line %s around the text to keep, found none; add them or "+
			"remove the file", mineBegin, mineEnd)
	}
	return mine, nil
}

// frontMatter returns the metadata for Hugging Face.
func (s *Set) frontMatter() conf.Node {
	m := s.Meta
	n := conf.Node{Kind: conf.Map}
	license := hubLicense(m.License)
	addText(&n, "license", license)
	if license == otherLicense {
		name := m.License
		if name == otherLicense {
			name = "custom"
		}
		addText(&n, "license_name", strings.ToLower(name))
		addText(&n, "license_link", m.licenseURL(m.License))
	}
	addText(&n, "pretty_name", m.Title)
	addList(&n, "size_categories", textNodes([]string{sizeCategory(s.ops())}))
	addList(&n, "tags", textNodes(s.keywords()))
	catalogue, ops := conf.Node{Kind: conf.Map}, conf.Node{Kind: conf.Map}
	addText(&catalogue, "config_name", "catalogue")
	addText(&catalogue, "data_files", s.Catalogue.Path)
	add(&catalogue, "default", conf.Node{Kind: conf.Bool, Text: "true"})
	addText(&ops, "config_name", "ops")
	addText(&ops, "data_files", storePattern)
	addList(&n, "configs", []conf.Node{catalogue, ops})
	return n
}

// ops returns the number of ops of all traces.
func (s *Set) ops() float64 {
	ops := 0.0
	for i := range s.Rows {
		ops += float64(s.Rows[i].Ops)
	}
	return ops
}

// sizeCategory returns the category of a number of rows on Hugging Face.
func sizeCategory(n float64) string {
	bounds := []string{"1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"}
	limit, below := 1e3, ""
	for _, bound := range bounds {
		if n < limit {
			return below + "n<" + bound
		}
		limit, below = limit*10, bound+"<"
	}
	return "n>1T"
}

// writeTable writes the table of traces.
func (s *Set) writeTable(b *bytes.Buffer) {
	b.WriteString("## Traces\n\n| trace | workload | ranks | ops | sent | critical path |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: |\n")
	for i := range s.Rows[:min(len(s.Rows), maxCardRows)] {
		r := &s.Rows[i]
		sent := "more than 8 EiB"
		if r.BytesSent != nil {
			sent = units.FormatSize(*r.BytesSent)
		}
		fmt.Fprintf(b, "| [%s](%s) | %s | %d | %d | %s | %s |\n", markdownLine(r.Trace), linkTarget(r.Path),
			markdownLine(r.Workload), r.Ranks, r.Ops, sent, dag.Time(r.CriticalPathPS))
	}
	if more := len(s.Rows) - maxCardRows; more > 0 {
		fmt.Fprintf(b, "\nThe catalogue lists %d more.\n", more)
	}
}

// writeTerms writes licence, citation and origin.
func (s *Set) writeTerms(b *bytes.Buffer) {
	b.WriteString("\n## Licence\n\n")
	all := s.licenses()
	for i, id := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "[%s](%s)", markdownLine(id), linkTarget(s.Meta.licenseURL(id)))
	}
	if len(all) > 1 {
		b.WriteString("\n\nThe catalogue has the licence of each trace.")
	}
	b.WriteString("\n\n## Citation\n\n")
	for line := range strings.SplitSeq(s.citation(), "\n") {
		b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
	}
	b.WriteString("\n## Origin\n\n")
	fmt.Fprintf(b, "Version %s, %s. Creators: %s.\n", s.Meta.Version, s.date(),
		markdownLine(agentNames(s.Meta.Creators, "; ")))
	if len(s.Meta.Funders) > 0 {
		fmt.Fprintf(b, "Funders: %s.\n", markdownLine(agentNames(s.Meta.Funders, "; ")))
	}
	if len(s.Meta.Sources) > 0 {
		fmt.Fprintf(b, "Made from: %s.\n", markdownLine(strings.Join(s.Meta.Sources, "; ")))
	}
	b.WriteString("The files were made by [tracedag](https://github.com/tracedag/tracedag): the columns program,\n" +
		"program_version and command of the catalogue have the command of each trace.\n")
}

// date returns the date of the last change.
func (s *Set) date() string {
	if s.Meta.Modified != "" {
		return s.Meta.Modified
	}
	return s.Meta.Date
}

// markdownLine returns a text as a line of Markdown, also in a table, without any markup.
func markdownLine(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(text), " ") {
		switch {
		case unprintable(r):
			continue
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_[]|~$", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// markdownProse returns paragraphs in which Markdown but no HTML has its meaning. A line cannot begin code without end,
// and thus hide what follows.
func markdownProse(text string) string {
	text = strings.ReplaceAll(text, "<", "&lt;")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " \t>")
		if strings.Contains(trimmed, "```") || strings.Contains(trimmed, "~~~") {
			lines[i] = strings.NewReplacer("`", "\\`", "~", "\\~").Replace(line)
		}
	}
	return strings.Join(lines, "\n")
}

// linkTarget returns a path or URL as the target of a link in a table.
func linkTarget(target string) string {
	var b strings.Builder
	for i := range len(target) {
		c := target[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("()<>|\\\"`[]", c) >= 0 {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)+0x100, 16)[1:]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
