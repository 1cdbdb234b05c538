package docs_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// repository is the root of the repository, relative to this folder.
const repository = ".."

// files returns the files below the root of the repository whose names end in suffix, without samples of tests.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "node_modules" || name == ".git"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, suffix):
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// line is a line of prose and its number.
type line struct {
	n    int
	text string
}

// noProse matches headings, lines of tables, images, HTML and indented code.
var noProse = regexp.MustCompile(`^( *\||#|<|!\[|    )`)

// markdownProse returns the lines of a page outside blocks of code, headings, tables, images and HTML.
func markdownProse(text string) []line {
	var prose []line
	code := false
	for i, l := range strings.Split(text, "\n") {
		if fence.MatchString(l) {
			code = !code
			continue
		}
		if !code && !noProse.MatchString(l) {
			prose = append(prose, line{i + 1, l})
		}
	}
	return prose
}

// cells returns the text in the cells of the tables of a page.
func cells(text string) []string {
	var all []string
	for _, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "|") {
			all = append(all, strings.Split(strings.Trim(l, "|"), "|")...)
		}
	}
	return all
}

// paragraphs joins consecutive lines that are not empty.
func paragraphs(lines []line) []string {
	var all []string
	last := -1
	for _, l := range lines {
		switch text := strings.TrimSpace(l.text); {
		case text == "":
			last = -1
		case last >= 0 && l.n == last+1:
			all[len(all)-1] += " " + text
			last = l.n
		default:
			all = append(all, text)
			last = l.n
		}
	}
	return all
}

// comments returns the paragraphs of the comments of a Go file.
func comments(t *testing.T, path, text string) []string {
	t.Helper()
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(path, -1, len(text)), []byte(text), nil, scanner.ScanComments)
	var lines []line
	for {
		at, tok, literal := s.Scan()
		if tok == token.EOF {
			return paragraphs(lines)
		}
		comment, found := strings.CutPrefix(literal, "//")
		if tok != token.COMMENT || !found || strings.HasPrefix(comment, "\t") || strings.HasPrefix(comment, "  ") {
			continue
		}
		lines = append(lines, line{set.Position(at).Line, comment})
	}
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?:;]\s+`)
	clause      = regexp.MustCompile(`^(Of|What|Where)\b`)
	letter      = regexp.MustCompile(`[A-Za-z]`)
)

// sentences splits a paragraph.
func sentences(paragraph string) []string {
	var all []string
	begin := 0
	for _, end := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
		all = append(all, strings.TrimSpace(paragraph[begin:end[1]]))
		begin = end[1]
	}
	return append(all, strings.TrimSpace(paragraph[begin:]))
}

// TestSentencesBeginWithTheirSubject checks that at most one sentence in a hundred begins with Of, What or Where.
func TestSentencesBeginWithTheirSubject(t *testing.T) {
	check := func(kind string, paragraphs map[string][]string) {
		total := 0
		var bad []string
		for path, all := range paragraphs {
			for _, p := range all {
				for _, s := range sentences(p) {
					if !letter.MatchString(s) {
						continue
					}
					total++
					if clause.MatchString(s) && !strings.HasSuffix(s, "?") {
						bad = append(bad, path+": "+s)
					}
				}
			}
		}
		if len(bad)*100 > total {
			t.Errorf("%s: %d of %d sentences begin with Of, What or Where:\n%s", kind, len(bad), total,
				strings.Join(bad, "\n"))
		}
	}
	markdown := make(map[string][]string)
	for _, path := range files(t, ".md") {
		text := read(t, path)
		markdown[path] = append(paragraphs(markdownProse(text)), cells(text)...)
	}
	check("Markdown", markdown)
	code := make(map[string][]string)
	for _, path := range files(t, ".go") {
		code[path] = comments(t, path, read(t, path))
	}
	check("Go comments", code)
}

var longLink = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)

// TestColumns checks that lines of prose have at most 100 columns, not counting the targets of links.
func TestColumns(t *testing.T) {
	for _, path := range files(t, ".md") {
		for _, l := range markdownProse(read(t, path)) {
			if utf8.RuneCountInString(l.text) > 100 && utf8.RuneCountInString(longLink.ReplaceAllString(l.text, "]")) > 100 {
				t.Errorf("%s:%d: %d columns of prose, expected at most 100", path, l.n, utf8.RuneCountInString(l.text))
			}
		}
	}
}

// TestTables checks that each row of a table has a line: no line has a row of dashes behind another row.
func TestTables(t *testing.T) {
	for _, path := range files(t, ".md") {
		for i, l := range strings.Split(read(t, path), "\n") {
			if strings.Contains(strings.TrimLeft(l, " |-:"), "| --- ") {
				t.Errorf("%s:%d: rows of a table in one line, expected a line for each", path, i+1)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	scheme  = regexp.MustCompile(`^(https?|mailto):`)
)

// anchors returns the anchors of the headings of a page, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := make(map[string]bool)
	code := false
	for _, l := range strings.Split(text, "\n") {
		if fence.MatchString(l) {
			code = !code
		}
		m := heading.FindStringSubmatch(l)
		if code || m == nil {
			continue
		}
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		for n, name := 0, anchor; ; n++ {
			if n > 0 {
				name = fmt.Sprintf("%s-%d", anchor, n)
			}
			if !all[name] {
				all[name] = true
				break
			}
		}
	}
	return all
}

// TestReadme checks that the README is short and begins with the commands that need no installation.
func TestReadme(t *testing.T) {
	text := read(t, filepath.Join(repository, "README.md"))
	if n := strings.Count(text, "\n"); n > 100 {
		t.Errorf("README.md has %d lines, expected at most 100", n)
	}
	first, _, _ := strings.Cut(text, "## Install")
	for _, command := range []string{"\ngo run ./cmd/tracegen horovod | go run ./cmd/simulate ", "\ngo test ./... "} {
		if !strings.Contains(first, command) {
			t.Errorf("README.md: expected the command%q before the installation", command)
		}
	}
}

// TestLinks checks that relative links refer to existing files and headings.
func TestLinks(t *testing.T) {
	for _, path := range files(t, ".md") {
		text := read(t, path)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if scheme.MatchString(m[1]) {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
				continue
			}
			if anchor != "" && strings.HasSuffix(to, ".md") && !anchors(read(t, to))[anchor] {
				t.Errorf("%s: link to %s: the page has no such heading", path, m[1])
			}
		}
	}
}

func TestProse(t *testing.T) {
	text := "# Title\n\nOne line\nand another. What now?\n\n```text\ncode\n```\n| Of x | y |\n\n    code\n"
	prose := paragraphs(markdownProse(text))
	if len(prose) != 1 || prose[0] != "One line and another. What now?" {
		t.Errorf("%q", prose)
	}
	if s := sentences(prose[0]); len(s) != 2 || s[1] != "What now?" {
		t.Errorf("%q", s)
	}
	if c := cells(text); len(c) != 2 || c[0] != " Of x " {
		t.Errorf("%q", c)
	}
	if got := anchors("# A `b`: [c](d.md), e_f-g\n## A\n## A\n"); !got["a-b-c-e_f-g"] || !got["a"] || !got["a-1"] {
		t.Errorf("%v", got)
	}
	go1 := "package x\n\n// One two\n// three.\n//\n//\tcode\n\nvar x int // Of this.\n"
	if c := comments(t, "x.go", go1); len(c) != 2 || c[0] != "One two three." || c[1] != "Of this." {
		t.Errorf("%q", c)
	}
}
