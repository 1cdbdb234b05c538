package formats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
)

// TestDocumentation checks the tables of options in the pages of formats, one at least for each table. -update rewrites
// them.
func TestDocumentation(t *testing.T) {
	pages, err := filepath.Glob("../docs/reference/formats/*.md")
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{} // names of the tables of writing
	for _, f := range All {
		if f.WriteOptions != nil {
			written[f.WriteOptions.Title] = true
		}
	}
	for _, table := range tables() {
		begin, found := "<!-- options of "+table.Name+" -->\n", false
		if written[table.Title] {
			begin = "<!-- options of writing " + table.Name + " -->\n"
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), begin) {
				golden.Section(t, page, begin, "<!-- end of options -->", table.New().Params().Markdown("Flags"))
				found = true
			}
		}
		if !found {
			t.Errorf("no page has %q", begin)
		}
	}
}
