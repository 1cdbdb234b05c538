package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFigures checks that the page of figures shows each script, its picture, and at least one verdict.
func TestFigures(t *testing.T) {
	text, err := os.ReadFile("examples/figures.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")
	scripts := glob(t, "examples/figures/[A-Z]*.sh")
	if len(sections) != len(scripts)+1 {
		t.Errorf("%d sections for %d scripts", len(sections)-1, len(scripts))
	}
	for _, script := range scripts {
		id := strings.TrimSuffix(filepath.Base(script), ".sh")
		if _, err := os.Stat("examples/figures/" + id + ".svg"); err != nil {
			t.Error(err)
		}
		found := false
		for _, section := range sections {
			shown := strings.Contains(section, "](figures/"+id+".sh)") &&
				strings.Contains(section, "](figures/"+id+".svg)")
			for _, verdict := range []string{" | trend holds", " | within ", " | exact"} {
				found = found || shown && strings.Contains(section, verdict)
			}
		}
		if !found {
			t.Errorf("figures.md has no results of %s", script)
		}
	}
}
