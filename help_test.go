package tracedag

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/docs"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/sim/backends"
)

// helpTexts returns the help of every command and topic of a program by its arguments.
func helpTexts(t *testing.T, newCommand func(*cli.Program) *cobra.Command) map[string]string {
	t.Helper()
	texts := map[string]string{}
	var root *cobra.Command
	add := func(args ...string) {
		got := clitest.Run(func(p *cli.Program) *cobra.Command {
			root = newCommand(p)
			return root
		}, args...)
		if got.Status != cli.ExitOK || got.Stderr != "" {
			t.Errorf("%q: status %d, stderr %q", args, got.Status, got.Stderr)
		}
		texts[strings.Join(args, " ")] = got.Stdout
	}
	add("--help")
	for _, topic := range manual.Of(root).Topics() {
		add("--help", topic)
	}
	for _, sub := range root.Commands() {
		if sub.Name() != "completion" && sub.Name() != "help" {
			add(sub.Name(), "--help")
			add("--help", sub.Name())
		}
	}
	return texts
}

// unwanted matches words for which the field has others. A word that is right in some sentences has a pattern for the
// others only: "link use" for utilization, but not "use".
var unwanted = regexp.MustCompile(`(?i)\b(ways?|laws?|rules? of choice|interfaces?|` +
	`(?:link|port|queue|buffer|network|bandwidth|processor) use|slow-downs?|quantiles?|` +
	`h[eo]lds? against|stands? for|says?|saying|said|tells?|telling|told|le(?:ave|aves|aving|ft) out|lets? go|` +
	`dealt|in turn|manner|agenda|the moments|nobody|notes?|bark(?:s|ed)?|drafts?|settled?|` +
	`left over|(?:never|not yet) ended|as nearly as|a generator for each|the center|today|so many|so long|so much)\b`)

// legitimate matches phrases in which an unwanted word has its usual meaning.
var legitimate = regexp.MustCompile(`(?i)\bthe data[ -]centers?\b`)

// unwantedWords returns the unwanted words of a text, each with the words around it.
func unwantedWords(text string) (found []string) {
	text = legitimate.ReplaceAllString(strings.Join(strings.Fields(text), " "), "")
	for _, at := range unwanted.FindAllStringIndex(text, -1) {
		found = append(found, strings.ToValidUTF8(text[max(0, at[0]-30):min(len(text), at[1]+30)], ""))
	}
	return found
}

func TestUnwantedWords(t *testing.T) {
	for text, want := range map[string]bool{
		"the use of --set": false, "link\nuse": true, "always": false, "this way": true, "leave\n  out": true,
		"told": true, "slow-down": true, "slowdown": false, "leftover": false, "at the data center": false,
	} {
		if got := unwantedWords(text); (len(got) > 0) != want {
			t.Errorf("%q: found %q", text, got)
		}
	}
}

func TestHelp(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, program := range programs {
		texts := helpTexts(t, program.make(&Extensions{}))
		if lines := strings.Count(strings.TrimSpace(texts["--help"]), "\n") + 1; lines > 60 {
			t.Errorf("%s --help has %d lines, expected at most 60", program.name, lines)
		}
		for args, text := range texts {
			for line := range strings.SplitSeq(text, "\n") {
				if n := utf8.RuneCountInString(line); n > 80 && !strings.Contains(args, "transports") &&
					!strings.Contains(args, "presets") {
					t.Errorf("%s %s: %d columns: %s", program.name, args, n, line)
				}
			}
			for _, words := range unwantedWords(text) {
				t.Errorf("%s %s: the help has an unwanted word: ... %s ...", program.name, args, words)
			}
		}
	}
}

// TestPages checks that every format, generator and backend has a reference page.
func TestPages(t *testing.T) {
	var names []string
	for _, name := range formats.All.Names() {
		names = append(names, "formats/"+name)
	}
	for _, g := range gen.All {
		names = append(names, "generators/"+g.Name)
	}
	for _, name := range backends.Names() {
		names = append(names, "backends/"+name)
	}
	for _, name := range names {
		if docs.Page(name) == "" {
			t.Errorf("%s has no page in docs/reference", name)
		}
	}
	if docs.Page("formats/none") != "" || docs.Page("") != "" || !slices.Contains(docs.General(), "topologies") {
		t.Error("pages that do not exist are found, or topologies is not")
	}
}

// TestManPages lints the man pages with groff.
func TestManPages(t *testing.T) {
	folder := t.TempDir()
	for _, program := range programs {
		if got := clitest.Run(program.make(&Extensions{}), "man", folder); got.Status != cli.ExitOK {
			t.Fatalf("%s man: status %d, stderr %q", program.name, got.Status, got.Stderr)
		}
	}
	pages, _ := filepath.Glob(filepath.Join(folder, "*.1"))
	for _, name := range []string{"simulate", "simulate-packet", "traceconv-goal", "tracecat", "tracegen-llm"} {
		if !slices.Contains(pages, filepath.Join(folder, name+".1")) {
			t.Errorf("there is no page %s", name)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff to lint with")
	}
	args := append([]string{"-ww", "-z", "-man", "-Tutf8", "-Kutf8"}, pages...)
	if output, err := exec.Command(groff, args...).CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestCatalogs checks the lists of the programs in JSON.
func TestCatalogs(t *testing.T) {
	for i, args := range [][]string{{"list"}, {"formats"}, {"formats"}, {"backends"}} {
		got := clitest.Run(programs[i].make(&Extensions{}), append(args, "--json")...)
		var entries []cli.Entry
		if err := json.Unmarshal([]byte(got.Stdout), &entries); err != nil || got.Status != cli.ExitOK {
			t.Errorf("%q: status %d, %v, stderr %q", args, got.Status, err, got.Stderr)
		}
		table := clitest.Run(programs[i].make(&Extensions{}), args...).Stdout
		for _, e := range entries {
			if !strings.Contains(table, "\n"+e.Name+" ") || e.Title == "" || e.Parameters == nil {
				t.Errorf("%q: entry %+v, table\n%s", args, e, table)
			}
		}
		if len(entries) < 5 {
			t.Errorf("%q: %d entries", args, len(entries))
		}
	}
}
