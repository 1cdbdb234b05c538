package simulate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestExamples runs the examples of the documentation, which have their commands in a block of sh and their output in
// the block of text that follows. The page of figures is generated; .ci/run runs its scripts.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs built without the race detector")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	pages, err := filepath.Glob("../../../docs/examples/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no examples", err)
	}
	programs := clitest.Link(t, "simulate", "tracegen")
	for _, page := range pages {
		if filepath.Base(page) == "figures.md" {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		commands, rest := block(string(text), "sh")
		want, _ := block(rest, "text")
		if commands == "" || want == "" {
			t.Errorf("%s: expected a block of sh and one of text", page)
			continue
		}
		run := exec.Command(shell, "-c", commands)
		run.Dir = filepath.Dir(page)
		run.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
		got, err := run.CombinedOutput()
		if err != nil || string(got) != want {
			t.Errorf("%s: got %v and %s, expected %s", page, err, got, want)
		}
	}
}

// block returns the first block of code in a language, and the text after it.
func block(text, language string) (code, rest string) {
	_, text, found := strings.Cut(text, "\n```"+language+"\n")
	if !found {
		return "", ""
	}
	code, rest, _ = strings.Cut(text, "```\n")
	return code, rest
}
